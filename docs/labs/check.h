// SPDX-License-Identifier: MIT
// What the check of a lab says: which part holds and which does not, what was seen, and the points. Never how to do it.
// LAB_WORD is a word that the grader makes up: points without it were not counted by the check (tools/make/grade.sh).
#pragma once
#include <cstdio>
#include <functional>
#include <string>

#ifndef LAB_WORD
#define LAB_WORD ""
#endif

class Lab {
  public:
    explicit Lab(const char* title) { std::printf("%s\n", title); }

    // `seen` gives what is wrong, in lines, or nothing where the part holds.
    void part(int points, const char* name, const std::function<std::string()>& seen) {
        const std::string wrong = seen();
        all_ += points;
        if (wrong.empty()) got_ += points;
        std::printf("%-9s%-6s%d of %d points\n", wrong.empty() ? "holds" : "not yet", name, wrong.empty() ? points : 0, points);
        std::string line;
        for (char c : wrong + "\n") {
            if (c != '\n') line += c;
            else if (!line.empty()) std::printf("         %s\n", line.c_str()), line.clear();
        }
    }

    // To be returned by main: 0 where all parts hold.
    int status() const {
        std::printf("%d of %d points%s\n", got_, all_, LAB_WORD);
        return got_ == all_ ? 0 : 1;
    }

  private:
    int got_ = 0, all_ = 0;
};
