# gnuplot docs/results/orders-translation.gp > docs/results/orders-translation.svg: BLEU against passes, from orders.md.
set terminal svg size 640,480 noenhanced background 'white'
set title 'English to German, means of three seeds'
set grid
set xlabel "passes of the model for a translation"
set ylabel "BLEU"
set xrange [1:12]
set yrange [0:36]
set key below maxrows 5 samplen 2
$steps << EOD
2.0 15.2
4.0 16.3
9.5 17.7
EOD
$thresholds << EOD
7.0 17.3
8.8 17.7
EOD
$insertion << EOD
4.8 10.7
5.4 13.3
6.5 10.0
EOD
$anyorder << EOD
4.0 15.0
7.5 16.0
9.5 16.3
EOD
$onediffusion << EOD
4.0 9.1
8.1 9.6
9.5 9.6
EOD
$blocks << EOD
3.2 6.6
5.8 8.0
10.0 8.7
11.1 8.7
EOD
plot 32.0 title "left to right, beam of 4" with lines lw 2 dt 2, \
     29.5 title "left to right, greedy" with lines lw 2, \
     29.3 title "right to left, greedy" with lines lw 1 dt 3, \
     $steps using 1:2 title "diffusion, --steps" with linespoints lw 2 pt 7, \
     $thresholds using 1:2 title "diffusion, --threshold" with linespoints lw 2 pt 5, \
     $insertion using 1:2 title "insertion (table)" with points pt 9 ps 1.3, \
     $anyorder using 1:2 title "one stack: any order" with linespoints lw 2 pt 13, \
     $onediffusion using 1:2 title "one stack: diffusion" with linespoints lw 1 pt 6, \
     $blocks using 1:2 title "one stack: blocks of 4" with linespoints lw 1 pt 4
