# gnuplot docs/results/kinds.gp > docs/results/kinds.svg: accuracy of each kind of attention against its speed, from long-range.md.
set terminal svg size 900,480 noenhanced background 'white'
set multiplot layout 1,2
set logscale x 2
set xrange [0.1:1.8]
set xlabel 'tokens a second, of softmax'
set grid
unset key
$kinds << END
softmax 42.7 100.0 1.00
window 43.9 100.0 1.08
longformer 53.3 100.0 1.04
strided 49.4 96.1 0.96
fixed 33.3 76.6 1.11
local 34.2 100.0 1.18
lsh 36.3 nan 0.24
sinkhorn nan nan 0.48
luna 40.0 100.0 0.99
luna_causal 46.0 43.8 0.37
linformer 31.2 100.0 0.44
performer 35.5 79.1 0.13
rfa 17.8 44.1 0.14
linear 43.8 43.8 0.59
lambda 43.8 99.3 0.41
END
set title 'ListOps-mini, 2,000 steps'
set ylabel 'accuracy, %'
set yrange [15:60]
plot $kinds using 4:2 with points pointtype 7, '' using 4:2:1 with labels offset 0,0.8 font ',10'
set title 'recall of 4 pairs, 2,000 steps'
set yrange [35:110]
plot $kinds using 4:3 with points pointtype 7, '' using 4:3:1 with labels offset 0,0.8 font ',10'
