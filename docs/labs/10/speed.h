// SPDX-License-Identifier: MIT
// Compares the time of the student's products with the time of the engine's product, on one thread. If the environment
// variable LAB_UNTIMED is set, each function computes a small product once, and the points do not depend on the time.
#pragma once
#include <cstdlib>
#include <random>

#include "docs/labs/10/lab.h"
#include "docs/labs/10/roofline.h"
#include "docs/labs/check.h"
#include "engine/ops/cpu/gemm.h"
#include "engine/ops/cpu/parallel.h"

using Product = void (*)(int, int, int, const float*, const float*, float*);
inline void engines(int M, int N, int K, const float* A, const float* B, float* C) {
    using namespace masquerade;
    const auto matrix = [](const float* x, int columns) { return Factor{x, DType::f32, columns, 1}; };
    gemm(M, N, K, matrix(A, K), matrix(B, N), {C, DType::f32, N});
}

class Speeds {
  public:
    // right: whether naive, ordered and tiled are right. A function that is wrong is not measured.
    explicit Speeds(const std::vector<bool>& right)
        : ways_{{"naive", naive}, {"ordered", ordered}, {"tiled", tiled}, {"engine", engines}} {
        masquerade::set_threads(1);
        std::mt19937 random(std::random_device{}());
        const int n = int(random() % 40) * 2 + (timed_ ? 401 : 101);
        square_.fill(n, n, n, random);
        time(ways_[3], square_);  // a warm-up, in which the engine allocates its memory
        for (std::size_t k = 0; k < 4; k++) {
            ways_[k].right = k == 3 || right[k];
            try {
                if (ways_[k].right) ways_[k].best = time(ways_[k], square_);
            } catch (...) {
                ways_[k].right = false;
            }
            if (k < 3 && ways_[k].right && (!fastest_ || ways_[k].best < fastest_->best)) fastest_ = &ways_[k];
        }
        if (!fastest_) return;
        // Measures the engine's and the fastest function in turns, and keeps the best time of each. After at least 5
        // turns, ends when the function reaches 80 % of the engine's speed. Otherwise, ends after 60 turns or 5
        // seconds.
        for (double spent = 0; spent < 5 && turns_ < (timed_ ? 60 : 1) && (turns_ < 5 || share() < 0.8); turns_++)
            for (Way* each : {&ways_[3], fastest_}) {
                const double taken = time(*each, square_);
                each->best = std::min(each->best, taken), spent += taken;
            }
        for (int turn = 0; turn < 10 && timed_ && ways_[0].right && ways_[1].right && gain() < 3; turn++)
            ways_[1].best = std::min(ways_[1].best, time(ways_[1], square_));
    }

    std::string of_rows() const {
        if (!ways_[0].right || !ways_[1].right) return "naive and ordered are not right yet";
        if (!timed_ || gain() >= 3) return "";
        return "ordered is " + number(gain()) + " times as fast as naive; 3 times are asked";
    }
    std::string of_share(double asked) const {
        if (!fastest_) return "no product is right yet";
        if (!timed_ || share() >= asked) return "";
        return fastest_->name + (" is at " + number(100 * share())) + " % of the engine's speed";
    }

    void print() const {
        if (!fastest_) return;
        std::printf("\nGFLOP/s on one thread, M, N, K = %d:", square_.M);
        for (const Way& w : ways_)
            if (w.right) std::printf(" %s %.3g,", w.name, square_.flops() / w.best / 1e9);
        std::printf(" %s / engine %.0f %%%s\n", fastest_->name, 100 * share(),
                    timed_ ? "" : "; LAB_UNTIMED: no time counts");
    }
    void draw() {
        if (!fastest_) return;
        std::mt19937 random(1);
        Shape row;
        row.fill(1, timed_ ? 4000 : 1000, timed_ ? 4000 : 1000, random);
        roofline::Drawing drawing{roofline::peak(), roofline::bandwidth(row.B), {}};
        for (const Way& w : ways_) {
            if (!w.right) continue;
            const std::string name = w.name;
            drawing.points.push_back({name[0], name + ", square", square_.intensity(), square_.flops() / w.best});
            if (w.product == naive) continue;  // too slow: it goes down the columns of a matrix of 64 MB
            const double best = std::min(time(w, row), time(w, row));
            drawing.points.push_back(
                {char(name[0] - 'a' + 'A'), name + ", one row", row.intensity(), row.flops() / best});
        }
        drawing.print();
        if (const char* path = std::getenv("LAB_SVG"); path && !drawing.write_svg(path))
            std::printf("LAB_SVG: %s cannot be written\n", path);
    }

  private:
    struct Shape {
        int M, N, K;
        std::vector<float> A, B, C;
        void fill(int m, int n, int k, std::mt19937& random) {
            M = m, N = n, K = k;
            A.resize(std::size_t(M) * std::size_t(K));
            B.resize(std::size_t(K) * std::size_t(N));
            C.resize(std::size_t(M) * std::size_t(N));
            for (auto* each : {&A, &B})
                for (float& x : *each) x = float(random() % 1024) / 512 - 1;
        }
        double flops() const { return 2.0 * M * N * K; }
        double intensity() const { return flops() / (4.0 * double(A.size() + B.size() + C.size())); }
    };
    struct Way {
        const char* name;
        Product product;
        bool right = false;
        double best = 0;  // best time for the square matrices, in seconds
    };

    static double time(const Way& w, Shape& s) {
        return roofline::seconds([&] { w.product(s.M, s.N, s.K, s.A.data(), s.B.data(), s.C.data()); });
    }
    double share() const { return ways_[3].best / fastest_->best; }
    double gain() const { return ways_[0].best / ways_[1].best; }

    const bool timed_ = !std::getenv("LAB_UNTIMED");
    Way ways_[4], *fastest_ = nullptr;
    Shape square_;
    int turns_ = 0;
};
