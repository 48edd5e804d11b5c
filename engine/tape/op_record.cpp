// SPDX-License-Identifier: MIT
#include "engine/tape/op_record.h"

namespace masquerade {

Record::Tensors declare_outputs(Tape& tape, OpNumber op, const std::string& name, const Record::Tensors& in,
                                const std::vector<Argument>& attributes) {
    std::vector<View> inputs;
    inputs.reserve(in.size());
    for (const Tensor* t : in) inputs.push_back(t ? t->view() : View());
    Record::Tensors out;
    for (const Output& o : outputs_of(op, inputs, attributes))
        out.push_back(tape.declare(out.empty() ? name : name + "." + o.parameter, o.shape, o.dtype));
    return out;
}

}  // namespace masquerade
