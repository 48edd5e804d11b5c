// SPDX-License-Identifier: MIT
#include "tools/plot/plot.h"

#include "doctest/doctest.h"

using namespace masquerade;

TEST_CASE("plot: no byte of a name means anything to the program that draws") {
    std::string every;
    for (int c = 0; c < 256; c++) every += char(c);
    for (const std::string& name :
         {every, every.substr(1, 40), every.substr(60, 80), std::string("p'\n!id\nsystem(\"id\")`id`$(id)\\")}) {
        const std::string gnuplot = gnuplot_string(name), dot = dot_string(name);
        for (const std::string& s : {gnuplot, dot}) {
            CHECK(s.size() > 2);
            CHECK(s.front() == '"');
            CHECK(s.find('"', 1) == s.size() - 1);
        }
        const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._\"\\";
        CHECK(gnuplot.find_first_not_of(letters) == gnuplot.npos);
        CHECK(dot.find_first_not_of(letters + "&#;") == dot.npos);
    }
    CHECK(gnuplot_string("loss é'") == "\"loss \\303\\251\\047\"");
    CHECK(dot_string("a\"b\\N é") == "\"a&#34;b\\\\N &#233;\"");
    CHECK(gnuplot_string("\xff") == "\"\\134xff\"");
}
