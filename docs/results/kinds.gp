# gnuplot docs/results/kinds.gp > docs/results/kinds.svg: accuracy of each kind of attention against its speed, from long-range.md.
set terminal svg size 900,480 noenhanced background 'white'
set multiplot layout 1,2
set logscale x 2
set xrange [0.1:1.8]
set xlabel 'tokens a second, of softmax'
set grid
unset key
names = 'softmax window longformer strided fixed local lsh sinkhorn luna luna_causal linformer performer rfa linear lambda'
$kinds << END
softmax 53.1 100.0 1.00
window 42.6 100.0 1.15
longformer 52.9 100.0 1.11
strided 49.6 98.3 1.04
fixed 35.1 92.2 1.10
local 35.0 100.0 1.10
lsh 38.7 100.0 0.25
sinkhorn 51.5 44.0 0.51
luna 41.9 81.1 0.99
luna_causal 45.9 42.7 0.44
linformer 30.7 100.0 0.50
performer 45.3 54.9 0.21
rfa 30.0 43.0 0.17
linear 39.6 43.2 0.64
lambda 43.5 99.8 0.59
END
set title 'ListOps-mini, 2,000 steps'
set ylabel 'accuracy, %'
set yrange [28:58]
# Where a name stands: above its point, or where there is room.
below(name) = name eq 'local' ? -0.9 : 0.9
beside(name) = name eq 'luna' ? -1 : name eq 'softmax' ? -3.5 : name eq 'window' ? 2.5 : name eq 'longformer' ? 2.5 : 0
plot $kinds using 4:2 with points pointtype 7, for [name in names] $kinds using (stringcolumn(1) eq name ? column(4) : NaN):2:1 with labels offset beside(name),below(name) font ',10'
set title 'recall of 4 pairs, 2,000 steps'
set yrange [35:118]
many = 'softmax window longformer local strided'  # all near 100
set label 1 "softmax, local, strided,\nlongformer, window" at 0.85,114 center font ',10'
beside(name) = name eq 'linear' ? 2 : name eq 'luna_causal' ? -2 : name eq 'performer' ? 2 : name eq 'rfa' ? -2 : name eq 'linformer' ? -2 : 0
below(name) = name eq 'luna_causal' || name eq 'lambda' ? -0.9 : 0.9
plot $kinds using 4:3 with points pointtype 7, for [name in names] $kinds using (stringcolumn(1) eq name && strstrt(many, name) == 0 ? column(4) : NaN):3:1 with labels offset beside(name),below(name) font ',10'
