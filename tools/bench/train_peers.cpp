// SPDX-License-Identifier: MIT
#include "tools/bench/train_peers.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/bench/machine.h"

namespace masquerade {
namespace {

using Json = nlohmann::json;

struct Allocator {
    const char *name, *library;
    Peer::Environment environment;
};

// Memory that is kept and not given back to the system costs no page faults at every step.
const std::vector<Allocator>& allocators() {
    static const Peer::Environment kept = {{"MALLOC_MMAP_THRESHOLD_", "8589934592"},
                                           {"MALLOC_TRIM_THRESHOLD_", "17179869184"},
                                           {"MALLOC_TOP_PAD_", "268435456"}};
    static const std::vector<Allocator> all = [] {
        Peer::Environment huge = kept;
        huge.insert(huge.end(),
                    {{"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"}, {"THP_MEM_ALLOC_ENABLE", "1"}});
        const char* never_given_back =
            "oversize_threshold:1,background_thread:true,metadata_thp:auto,dirty_decay_ms:9000000000,"
            "muzzy_decay_ms:9000000000";
        return std::vector<Allocator>{
            {"glibc, tuned", "glibc", kept},
            {"glibc", "glibc", {}},
            {"glibc, tuned, huge pages", "glibc", huge},
            {"jemalloc", "jemalloc", {{"LD_PRELOAD", "libjemalloc.so.2"}, {"MALLOC_CONF", never_given_back}}},
            {"tcmalloc", "tcmalloc", {{"LD_PRELOAD", "libtcmalloc_minimal.so.4"}}}};
    }();
    return all;
}

const std::string plain_allocator = "glibc";

const Allocator& allocator_named(const std::string& name) {
    for (const Allocator& a : allocators())
        if (name == a.name) return a;
    throw Error("there is no allocator " + name);
}

// Debian's PyTorch takes the BLAS it finds; its fastest lies in a folder that is not searched by default.
Peer::Environment environment_of(const Allocator& allocator, int threads) {
    Peer::Environment all = allocator.environment;
    all.push_back({"OMP_NUM_THREADS", std::to_string(threads)});
    for (const char* folder :
         {"/usr/lib/x86_64-linux-gnu/openblas-openmp", "/usr/lib/aarch64-linux-gnu/openblas-openmp"})
        if (std::filesystem::exists(folder)) {
            const char* before = std::getenv("LD_LIBRARY_PATH");
            all.push_back(
                {"LD_LIBRARY_PATH", std::string(folder) + (before && *before ? text(':', before) : "")});
            break;
        }
    return all;
}

// For a request: the choices that the script knows.
Json variant_json(const Variant& variant, const std::string& precision) {
    Json json = variant;
    json.erase("allocator");
    json["precision"] = precision;
    return json;
}

// What this PyTorch lets be chosen; beside another form of the same model, only what may differ from it. A
// GPU's memory is PyTorch's own affair: there is nothing to choose.
std::vector<VariantAxis> axes_of(const Json& features, const std::string& device, bool compiled,
                                 const Variant& only, const PeerChoice* like) {
    auto has = [&](const char* feature) { return features.value(feature, false); };
    VariantAxis allocator{"allocator", {}}, attention{"attention", {"explicit"}},
        optimiser{"optimiser", {"single"}}, loss{"loss", {"logits"}}, mode{"mode", {"eager"}};
    for (const Allocator& a : allocators())
        if (device == "cpu" || a.name == plain_allocator) allocator.choices.push_back(a.name);
    if (has("sdpa")) attention.choices.push_back("sdpa");
    if (has("chunked_loss")) loss.choices.push_back("chunked");
    if (has("fused")) optimiser.choices = {"fused"};
    optimiser.choices.push_back("foreach");
    if (compiled && has("compile")) mode.choices.insert(mode.choices.end(), {"layers compiled", "compiled"});
    if (like)
        for (VariantAxis* axis : {&allocator, &optimiser, &loss})
            axis->choices = {like->variant.at(axis->name)};
    if (!only.empty())
        for (VariantAxis* axis : {&allocator, &attention, &optimiser, &loss, &mode})
            axis->choices = {only.count(axis->name) ? only.at(axis->name) : axis->choices.front()};
    return {allocator, attention, optimiser, loss, mode};
}

}  // namespace

TrainPeer::TrainPeer(const std::string& python_name, const std::string& allocator_name, Json start,
                     int threads)
    : python(python_name),
      allocator(allocator_name),
      peer(python_name, source_file("tools/bench/train_peer.py").string(),
           environment_of(allocator_named(allocator_name), threads)) {
    start["do"] = "start";
    start["allocator"] = allocator_named(allocator_name).library;
    start["threads"] = threads;
    const Json answer = peer.ask(start, peer_patience);
    version = answer.at("version").get<std::string>() + ", Python " + answer.at("python").get<std::string>();
    slow_blas = answer.at("slow_blas");
    features = answer.at("features");
}

TrainPeers::TrainPeers(std::vector<std::string> pythons, bool all, bool compiled, Variant only, Json start,
                       int threads)
    : pythons_(std::move(pythons)),
      all_(all),
      compiled_(compiled),
      only_(std::move(only)),
      start_(std::move(start)),
      threads_(threads) {}

TrainPeer& TrainPeers::child(const std::string& python, const std::string& allocator) {
    if (!child_ || child_->python != python || child_->allocator != allocator) {
        child_.reset();
        child_ = std::make_unique<TrainPeer>(python, allocator, start_, threads_);
    }
    return *child_;
}

void TrainPeers::search(PeerChoice& choice, const std::string& python, const PeerChoice* like,
                        const PeerProgress& progress) {
    const int before = choice.search.best;
    const std::string device = start_.at("device");
    const std::string first = like              ? like->variant.at("allocator")
                              : device == "cpu" ? allocators().front().name
                                                : plain_allocator;
    const Json features = child(python, first).features;
    auto attempt = [&](const Variant& variant, double limit) {
        TriedVariant tried{variant, 0, ""};
        progress(text(choice.work.form, ' ', choice.work.precision, ": ", describe(variant)));
        Json request = {{"do", "try"},
                        {"form", choice.work.form},
                        {"variant", variant_json(variant, choice.work.precision)}};
        if (std::isfinite(limit)) request["limit"] = limit;
        try {
            const Json answer = child(python, variant.at("allocator")).peer.ask(request, peer_patience);
            if (answer.contains("failed"))
                tried.failed = answer["failed"];
            else
                tried.seconds = answer.at("seconds");
        } catch (const PeerError& error) {
            const bool missing = std::strstr(error.what(), "is not here") != nullptr;
            tried.failed = missing ? "not installed" : error.what();
            child_.reset();
        }
        return tried;
    };
    search_variants(choice.search, axes_of(features, device, compiled_, only_, like), attempt);
    if (choice.search.best == before) return;
    choice.python = python;
    choice.variant = choice.search.fastest()->variant;
    TrainPeer& best = child(python, choice.variant.at("allocator"));
    choice.version = best.version;
    choice.slow_blas = best.slow_blas;
}

// Uncompiled: what is compared is the model, not the compiler.
void TrainPeers::compare(PeerChoice& choice) {
    Variant plain = choice.variant;
    plain["mode"] = "eager";
    const Json request = {
        {"do", "check"}, {"form", choice.work.form}, {"variant", variant_json(plain, choice.work.precision)}};
    choice.check = child(choice.python, choice.variant.at("allocator")).peer.ask(request, peer_patience);
}

PeerChoice TrainPeers::choose(const PeerWork& work, const PeerChoice* like, const PeerProgress& progress) {
    PeerChoice choice;
    choice.work = work;
    std::string why;
    for (const std::string& python : like ? std::vector<std::string>{like->python} : pythons_) {
        try {
            search(choice, python, like, progress);
            if (choice.search.fastest() && !all_) break;
        } catch (const PeerError& error) {
            child_.reset();
            why = error.what();
            failures.push_back(why);
        }
    }
    if (!choice.search.fastest()) {
        if (!choice.search.tried.empty()) why = choice.search.tried.front().failed;
        throw PeerError(text("no PyTorch here trains ", work.form, " in ", work.precision, ": ", why));
    }
    compare(choice);
    child_.reset();
    return choice;
}

std::unique_ptr<TrainPeer> TrainPeers::start(const PeerChoice& choice, double& loss) const {
    auto fresh = std::make_unique<TrainPeer>(choice.python, choice.variant.at("allocator"), start_, threads_);
    const Json request = {{"do", "build"},
                          {"form", choice.work.form},
                          {"variant", variant_json(choice.variant, choice.work.precision)}};
    loss = fresh->peer.ask(request, peer_patience).at("loss");
    return fresh;
}

}  // namespace masquerade
