# gnuplot docs/results/orders-texts.gp > docs/results/orders-texts.svg: perplexity against passes, from orders.md.
set terminal svg size 640,400 noenhanced background 'white'
set logscale xy 2
set xrange [0.9:18]
set yrange [10:12000]
set xlabel 'passes of the model for a text'
set ylabel 'perplexity of the samples'
set title 'English questions, means of three seeds; held-out text: 19'
set grid
set key top right
$data0 << END
12.1 57
END
$data1 << END
1.0 440
2.0 239
3.7 163
5.9 128
11.0 97
END
$data2 << END
3.4 1043
6.6 254
13.0 105
END
$data3 << END
2.1 1418
3.8 402
6.9 218
13.4 126
END
$data4 << END
9.9 19
10.8 22
11.0 14
END
$data5 << END
3.7 153
11.0 93
END
plot $data0 using 1:2 with points pointtype 5 title "left to right", \
    $data1 using 1:2 with linespoints pointtype 7 title "diffusion, random order", \
    $data2 using 1:2 with linespoints pointtype 9 title "blocks of 4, random order", \
    $data3 using 1:2 with linespoints pointtype 11 title "blocks of 8, random order", \
    $data5 using 1:2 with linespoints pointtype 4 title "any order, random order", \
    $data4 using 1:2 with points pointtype 13 title "order by confidence", \
    19 with lines dashtype 2 notitle
