# gnuplot docs/results/few-labels.gp > docs/results/few-labels.svg: what few labels find on vectors learned without any, from few-labels.md.
set terminal svg size 640,400 noenhanced background 'white'
set logscale x
set xrange [0.8:280]
set yrange [0:90]
set xtics (1, 10, 100)
set xlabel 'labels of each of the ten domains'
set ylabel 'lines right, %; least and most of 5 draws'
set grid
set key top left
# labels, mean, least, most: of five draws
$words << END
1 19.9 17.5 21.8
10 45.5 44.2 48.2
100 80.9 80.0 82.2
END
$mlm << END
1 29.8 24.3 35.3
10 58.6 54.2 61.8
100 75.7 74.5 76.6
END
$vmf << END
1 18.6 17.2 19.8
10 31.3 28.9 36.7
100 53.6 52.9 53.9
END
$gaussian << END
1 14.8 13.0 18.0
10 33.4 31.2 35.8
100 59.6 59.3 60.0
END
$untrained << END
1 13.1 12.1 15.7
10 26.5 23.2 31.6
100 54.9 54.1 55.4
END
plot $words with yerrorlines title 'naive Bayes over words', $mlm with yerrorlines title 'mlm, mean of the states', \
     $vmf using ($1*1.06):2:3:4 with yerrorlines title 'UniVAE, vmf', \
     $gaussian using ($1*0.94):2:3:4 with yerrorlines title 'UniVAE, gaussian', $untrained using ($1*1.12):2:3:4 with yerrorlines linecolor 'gray40' title 'UniVAE, untrained'
