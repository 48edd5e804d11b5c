// SPDX-License-Identifier: MIT
#include "models/scoring/source_baselines.h"

#include <algorithm>
#include <cmath>

#include "engine/base/named.h"
#include "input/utf8.h"
#include "models/scoring/text_metrics.h"

namespace masquerade {

std::string first_words(std::string_view line, std::size_t n) {
    Strings words = words_of(line);
    words.resize(std::min(n, words.size()));
    return joined(words, " ");
}

std::string first_characters(std::string_view line, std::size_t n) {
    std::string characters;
    for (char32_t c : characters_of(line).substr(0, n)) append_utf8(characters, c);
    return characters;
}

NearestSource::NearestSource(const Strings& sources) {
    if (sources.empty() || sources.size() > UINT32_MAX)
        throw BadInput("the nearest of ", sources.size(), " training sources is asked for; there must be 1 to ",
                       UINT32_MAX);
    std::vector<Bag> bags;
    for (const std::string& source : sources) bags.push_back(read(source));

    sources_.resize(table_.size());
    for (std::size_t i = 0; i < bags.size(); i++)
        for (const auto& [word, times] : bags[i]) sources_[word].push_back({std::uint32_t(i), times});
    for (const auto& places : sources_) idf_.push_back(1 + std::log((1.0 + sources.size()) / (1.0 + places.size())));
    Numbers lengths;
    for (const Bag& bag : bags) lengths.push_back(length_of(bag));
    for (std::size_t word = 0; word < sources_.size(); word++)
        for (Place& place : sources_[word]) place.weight = place.weight * idf_[word] / lengths[place.source];
    cosines_.resize(sources.size());
}

NearestSource::Bag NearestSource::read(std::string_view line) {
    Tokens words = table_.read(line);
    std::sort(words.begin(), words.end());
    Bag bag;
    for (int word : words) {
        if (bag.empty() || bag.back().first != word) bag.emplace_back(word, 0);
        bag.back().second++;
    }
    return bag;
}

// The sum is taken in ascending order of words, so that lines with the same words have bit-identical norms.
double NearestSource::length_of(const Bag& bag) const {
    double sum = 0;
    for (const auto& [word, times] : bag) {
        const double weight = times * idf_[word];
        sum += weight * weight;
    }
    return std::sqrt(sum);
}

NearestSource::Found NearestSource::find(std::string_view source) {
    Bag bag = read(source);
    // Words that no training source contains have the largest numbers, so they are the last entries of `bag`. They are
    // removed.
    while (!bag.empty() && std::size_t(bag.back().first) >= idf_.size()) bag.pop_back();
    const double length = length_of(bag);
    std::fill(cosines_.begin(), cosines_.end(), 0.0);
    for (const auto& [word, times] : bag) {
        const double weight = times * idf_[word] / length;
        for (const Place& place : sources_[word]) cosines_[place.source] += weight * place.weight;
    }
    const auto best = std::max_element(cosines_.begin(), cosines_.end());  // the first of several equal maxima
    return {std::size_t(best - cosines_.begin()), *best};
}

}  // namespace masquerade
