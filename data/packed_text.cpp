// SPDX-License-Identifier: MIT
#include "data/packed_text.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/io/checksum.h"
#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade {
namespace {

constexpr int version = 1;
constexpr std::size_t piece = 1 << 20;  // bytes over which a checksum is computed before it is combined with the next
constexpr std::size_t offset_bytes = sizeof(std::uint64_t);
constexpr const char *record = "pack.json", *id_name = "ids.bin", *index_name = "index.bin",
                     *held_name = "held-out.txt", *vocabulary_name = "vocab.txt", *tokenizer_name = "tokenizer.json";

std::size_t bytes_of_id(int vocabulary) { return vocabulary <= 65536 ? 2 : 4; }

nlohmann::json json_of(const PackedCounts& c) {
    return {{"tokens", c.tokens}, {"words", c.words.words}, {"unknown", c.words.unknown}, {"lengths", c.lengths}};
}

PackedCounts counts_in(const nlohmann::json& json) {
    PackedCounts c;
    c.tokens = json.at("tokens");
    c.words.words = json.at("words"), c.words.unknown = json.at("unknown");
    c.lengths = json.at("lengths").get<std::vector<std::int64_t>>();
    return c;
}

// Returns the checksum that the record has about itself.
std::string checksum_of(nlohmann::json json) {
    json.erase("checksum");
    return hexadecimal(hash_of(json.dump()));
}

}  // namespace

bool PackedText::is_at(const std::string& path) {
    std::error_code none;
    return std::filesystem::is_regular_file(path + "/" + record, none);
}

PackedText::PackedText(const std::string& folder) : folder_(folder) {
    const std::string bytes = read_file(path(record));
    const auto json = parse_input<BadInput>(bytes, path(record));
    hash_ = hash_of(bytes);
    try {
        if (json.at("version") != version)
            throw BadInput(
                text(path(record), " has version ", json.at("version").dump(), " of the format; expected ", version));
        if (json.at("checksum") != checksum_of(json)) throw Error("its own checksum is wrong");
        lines_ = json.at("lines");
        pairs_ = json.at("pairs"), cased_ = json.at("cased");
        vocabulary_ = json.at("vocabulary"), held_out_ = json.at("held_out");
        counts_[0] = counts_in(json.at("source"));
        if (pairs_) counts_[1] = counts_in(json.at("target"));
        for (const char* name : {id_name, index_name, held_name}) json.at("files").at(name);
        for (const auto& [name, file] : json.at("files").items())
            files_.push_back({name, file.at("checksum"), file.at("bytes")});
        if (lines_ < 1 || lines_ > INT_MAX || vocabulary_ < 1) throw Error("a number is out of range");
    } catch (const BadInput&) {
        throw;
    } catch (const std::exception&) {
        throw BadInput(path(record), " is not the record of a packed text, or is damaged; was it edited?");
    }
    id_bytes_ = bytes_of_id(vocabulary_);
    id_file_.emplace(path(id_name)), index_file_.emplace(path(index_name));
    for (const File& file : files_) {
        const std::uint64_t found = FileReader(path(file.name)).size();
        if (found != file.bytes)
            throw BadInput(path(file.name), " has ", found, " bytes, expected ", file.bytes,
                           "; the packed text is damaged: pack it again");
        if (file.name != id_name && file.name != index_name) check(file);
    }
    ids_ = id_file_->size() / id_bytes_;
    const std::uint64_t entries = (pairs_ ? 2 : 1) * lines_ + 1;
    if (index_file_->size() != entries * offset_bytes)
        throw BadInput(index_file_->path(), " has ", index_file_->size(), " bytes, but ", lines_,
                       pairs_ ? " pairs" : " lines", " need ", entries * offset_bytes);
}

void PackedText::check(const File& file) const {
    const FileReader reader(path(file.name));
    std::vector<char> bytes(piece);
    std::uint64_t sum = 0;
    for (std::uint64_t at = 0; at < reader.size(); at += piece) {
        const std::size_t count = std::min<std::uint64_t>(piece, reader.size() - at);
        reader.read(at, bytes.data(), count);
        sum = checksum(bytes.data(), count, sum);
    }
    if (hexadecimal(sum) != file.checksum)
        throw BadInput(reader.path(), " has the checksum ", hexadecimal(sum), ", expected ", file.checksum,
                       "; the packed text is damaged: pack it again");
}

void PackedText::check() const {
    for (const File& file : files_) check(file);
}

WordPiece PackedText::tokenizer() const { return training_tokenizer(read_tokenizer(folder_)); }

Text PackedText::held_out() const {
    if (held_out_ == 0) return {};
    return parse_text(read_bytes(path(held_name)), path(held_name), longest_sentence, pairs_);
}

bool PackedText::append(std::uint64_t line, bool target, std::size_t most, Tokens& ids) const {
    const std::uint64_t entry = pairs_ ? 2 * line + target : line;
    std::uint64_t ends[2];  // where the ids of the line begin and end
    index_file_->read(entry * offset_bytes, ends, sizeof ends);
    if (ends[0] > ends[1] || ends[1] > ids_)
        throw BadInput(index_file_->path(), " is damaged at entry ", entry, "; ./tokenize --check ", folder_,
                       " checks all files");
    const std::size_t count = std::min<std::uint64_t>(ends[1] - ends[0], most);
    std::vector<unsigned char> bytes(count * id_bytes_);
    id_file_->read(ends[0] * id_bytes_, bytes.data(), bytes.size());
    for (std::size_t i = 0; i < count; i++) {
        std::uint32_t id = 0;
        std::memcpy(&id, &bytes[i * id_bytes_], id_bytes_);  // little-endian
        if (id >= std::uint32_t(vocabulary_))
            throw BadInput(id_file_->path(), " has the id ", id, " at place ", ends[0] + i, ", but ids are below ",
                           vocabulary_, "; ./tokenize --check ", folder_, " checks all files");
        ids.push_back(id);
    }
    return ends[1] - ends[0] > most;
}

namespace {

class PackedSentences : public SentenceList {
  public:
    PackedSentences(std::shared_ptr<const PackedText> packed, const Vocabulary& v, bool targets, int max_length,
                    int max_target)
        : text_(std::move(packed)), targets_(targets), limits_{max_length, max_target}, cls_(v.cls()), sep_(v.sep()) {
        if (v.size() != text_->vocabulary())
            throw BadInput("the packed text has the ids of a vocabulary of ", text_->vocabulary(),
                           " tokens, but the vocabulary has ", v.size());
    }
    std::uint64_t size() const override { return text_->lines(); }
    Sentence at(std::uint64_t i) const override {
        Sentence s;
        s.name = i;
        s.ids.push_back(cls_);
        s.cut = text_->append(i, false, room(false), s.ids);
        s.ids.push_back(sep_);
        if (!targets_) return s;
        s.target_cut = text_->append(i, true, room(true), s.target);
        s.target.push_back(sep_);
        return s;
    }
    ReadCounts counts(const Vocabulary&, bool targets) const override {
        if (targets && !targets_) return {};
        const PackedCounts& c = text_->counts(targets);
        ReadCounts counts = c.words;
        counts.lines = text_->lines();
        for (std::size_t n = room(targets) + 1; n < c.lengths.size(); n++) counts.cut += c.lengths[n];
        if (counts.cut > 0) counts.words = counts.unknown = 0;  // some of these words are cut off; it is unknown which
        return counts;
    }

  private:
    // Returns how many tokens of a source or of a target are read, not counting special tokens.
    std::size_t room(bool targets) const { return std::max(0, limits_[targets] - (targets ? 1 : 2)); }

    const std::shared_ptr<const PackedText> text_;
    const bool targets_;
    const int limits_[2];
    const int cls_, sep_;
};

}  // namespace

std::shared_ptr<const SentenceList> sentences_of(std::shared_ptr<const PackedText> text, const Vocabulary& vocabulary,
                                                 bool targets, int max_length, int max_target) {
    return std::make_shared<PackedSentences>(std::move(text), vocabulary, targets, max_length, max_target);
}

// A file that is written in pieces, with its checksum.
class PackWriter::Pieces {
  public:
    explicit Pieces(const std::string& path) : file_(path) {}
    void write(const void* data, std::size_t bytes) {
        held_.append(static_cast<const char*>(data), bytes);
        while (held_.size() >= piece) flush(piece);
    }
    // Returns the entry of the file in the record.
    nlohmann::json finish() {
        if (!held_.empty()) flush(held_.size());
        file_.finish();
        return {{"bytes", bytes_}, {"checksum", hexadecimal(sum_)}};
    }

  private:
    void flush(std::size_t count) {
        file_.write(held_.data(), count);
        sum_ = checksum(held_.data(), count, sum_);
        bytes_ += count;
        held_.erase(0, count);
    }

    FileWriter file_;
    std::string held_;
    std::uint64_t sum_ = 0, bytes_ = 0;
};

PackWriter::PackWriter(const std::string& place, const WordPiece& tokenizer, bool pairs)
    : place_(place), tokenizer_(tokenizer), words_(tokenizer.vocabulary()), pairs_(pairs) {
    for (const char* name : {id_name, index_name})
        files_.emplace_back(name, std::make_unique<Pieces>(place_ + "/" + name));
    files_[1].second->write(&ids_, offset_bytes);
    write_small(vocabulary_name, tokenizer_.vocabulary().lines());
    if (tokenizer_.options().rules == Rules::hugging_face) write_small(tokenizer_name, tokenizer_json(tokenizer_));
}

PackWriter::~PackWriter() = default;

void PackWriter::add(const Tokens& ids, PackedCounts& counts) {
    const std::size_t bytes = bytes_of_id(tokenizer_.vocabulary().size());
    for (int id : ids) files_[0].second->write(&id, bytes);
    ids_ += ids.size();
    files_[1].second->write(&ids_, offset_bytes);
    counts.tokens += ids.size();
    words_.add(ids, counts.words);
    if (counts.lengths.size() <= ids.size()) counts.lengths.resize(ids.size() + 1);
    counts.lengths[ids.size()]++;
}

void PackWriter::add(const Tokens& source, const Tokens& target) {
    if (++lines_ > INT_MAX) throw BadInput("a packed text has at most ", INT_MAX, " lines; divide the text");
    add(source, counts_[0]);
    if (pairs_) add(target, counts_[1]);
}

void PackWriter::write_small(const std::string& name, const std::string& bytes) {
    files_.emplace_back(name, std::make_unique<Pieces>(place_ + "/" + name));
    files_.back().second->write(bytes.data(), bytes.size());
}

void PackWriter::finish(const std::string& held_out, std::size_t held_out_lines, const TextCounts& counts) {
    write_small(held_name, held_out);
    nlohmann::json json = {{"version", version},
                           {"lines", lines_},
                           {"pairs", pairs_},
                           {"cased", !tokenizer_.options().lower},
                           {"vocabulary", tokenizer_.vocabulary().size()},
                           {"held_out", held_out_lines},
                           {"source", json_of(counts_[0])},
                           {"text",
                            {{"lines", counts.lines},
                             {"bytes", counts.bytes},
                             {"invalid_bytes", counts.invalid_bytes},
                             {"cut", counts.cut},
                             {"halves", counts.halves},
                             {"further", counts.further}}}};
    if (pairs_) json["target"] = json_of(counts_[1]);
    for (auto& [name, file] : files_) json["files"][name] = file->finish();
    json["checksum"] = checksum_of(json);
    write_file(place_ + "/" + record, json.dump(2) + "\n");
}

}  // namespace masquerade
