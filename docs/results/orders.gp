# gnuplot docs/results/orders.gp > docs/results/orders.svg: solved puzzles against passes, from orders.md.
set terminal svg size 640,400 noenhanced background 'white'
set logscale x 2
set xrange [2.8:80]
set yrange [0:108]
set xlabel 'passes of the model for a puzzle'
set ylabel 'solved, %'
set title 'Sudoku 6 x 6, means of three seeds'
set grid
unset key
# passes, solved, place of the name, name
$rows << END
37.0 20.2 26 "left to right"
37.0 39.6 45 "left to right, beam of 4"
37.0 10.5 4 "right to left"
37.0 15.4 11 "diffusion, random order"
37.0 94.4 101 "confidence, margin, entropy"
10.2 94.5 103 "any order, threshold 0.99"
5.9 67.6 63 "any order, threshold 0.9"
7.1 88.9 95 "threshold 0.99"
3.9 46.3 52 "threshold 0.9"
6.1 79.4 73 "entropy bound 0.1"
9.0 77.1 83 "9 steps"
4.0 30.2 24 "4 steps"
14.4 44.4 50 "blocks of 12, threshold 0.99"
9.9 38.7 42.5 "blocks of 12, threshold 0.9"
12.2 29.8 33.5 "blocks of 8, threshold 0.9"
16.4 24.9 21 "blocks of 4, threshold 0.9"
END
plot $rows using 1:2 with points pointtype 7, $rows using 1:3:4 with labels font ',10'
