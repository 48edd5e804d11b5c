// SPDX-License-Identifier: MIT
// Packing sentences for UniVAE: encoder rows [CLS] a .. [SEP], decoder rows [CLS] a .. (each predicts its successor, the
// last one [SEP]), positions, masks, and the inert tail that fills a bucket.
#include "models/masks/mask.h"
#include "models/batch/packing.h"
#include "models/nets/univae.h"

namespace masquerade {
namespace {

// Sentences of [PAD] alone: one per spare document, the first as long as the rows that are missing. `target` is what its
// decoder half has.
struct Filler {
    int source = 1, target = 0;
};
std::vector<Filler> fill(int encoder_rows, int decoder_rows, int documents, int pad_to) {
    std::vector<Filler> fillers;
    if (pad_to <= 1) return fillers;
    fillers.resize(std::size_t(rounded_up(documents + 1, 8) - documents));
    int spare = int(fillers.size());
    fillers[0].source = rounded_up(encoder_rows + spare, pad_to) - encoder_rows - (spare - 1);
    fillers[0].target = rounded_up(decoder_rows, pad_to) - decoder_rows;
    return fillers;
}

// One half of a document; the rows of a filler wrap around, so that every position has a table entry.
void push_half(TokenRows& rows, const std::vector<int>& ids, int count, int type, int start, int wrap,
               int name) {
    for (int t = 0; t < count; t++)
        rows.push(t < int(ids.size()) ? ids[std::size_t(t)] : 0, type, start + t % wrap, name);
}

}  // namespace

UniVaeBatch UniVae::batch(const std::vector<const Sentence*>& sentences, int pad_to, bool with_joint) const {
    UniVaeBatch b;
    b.documents = int(sentences.size());
    Documents documents;
    const int wrap = options.max_length;
    b.decoder_begin.push_back(0);
    auto push = [&](const std::vector<int>& ids, int source, int target, int name, bool real) {
        const int start = start_position(real ? source : wrap), document = int(documents.size());
        documents.push_back(Document{source, target});
        b.cls_rows.push_back(b.encoder.count());
        b.cls_documents.push_back(name);
        b.cls_positions.push_back(0);
        b.names.push_back(name);
        b.document_weights.push_back(real ? 1 : 0);
        for (int i = 0; i < source; i++) b.which.push_back(i == 0 ? document : -1);
        if (with_joint) {
            b.joint_cls_rows.push_back(b.joint.count());
            push_half(b.joint, ids, source, 0, 0, wrap, name);
            for (int i = 0; i < source + target; i++) b.joint_which.push_back(i == 0 ? document : -1);
            for (int t = 0; t < target; t++) b.joint_decoder_rows.push_back(b.joint.count() + t);
            push_half(b.joint, ids, target, 1, start, wrap, name);
        }
        push_half(b.encoder, ids, source, 0, 0, wrap, name);
        push_half(b.decoder, ids, target, 1, start, wrap, name);
        for (int t = 0; t < target; t++) {
            b.targets.push_back(real ? ids[std::size_t(t) + 1] : 0);
            b.token_weights.push_back(real ? 1 : 0);
        }
        b.decoder_begin.push_back(b.decoder.count());
    };
    for (const Sentence* s : sentences) {
        const int n = int(s->ids.size());
        if (n < 2 || n > options.max_length)
            throw Error(
                text("a sentence has ", n, " tokens, expected 2 to max_length = ", options.max_length));
        push(s->ids, n, n - 1, s->name, true);
    }
    b.target_count = b.decoder.count();
    int name = first_filler;
    for (const Filler& f : fill(b.encoder.count(), b.decoder.count(), b.documents, pad_to))
        push({}, f.source, f.target, name--, false);

    b.encoder_graph = full_mask(sources_of(documents));
    b.cls_graph = cls_mask(sources_of(documents));
    b.independent_graph = causal_mask(targets_of(documents));
    b.latent_graph = latent_mask(documents);
    if (with_joint) {
        b.joint_lower_graph = independent_mask(documents);
        b.joint_upper_graph = uniae_mask(documents);
    }
    b.bucket =
        text(b.encoder.count(), ",", b.decoder.count(), ",", b.names.size(), with_joint ? ",joint" : "");
    return b;
}

}  // namespace masquerade
