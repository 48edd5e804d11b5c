// SPDX-License-Identifier: MIT
// Compares the declarations of engine/nccl/nccl.h with those of NCCL's own header, where there is one. Nothing runs:
// the file compiles, or it does not.
#include "engine/nccl/nccl.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace {

// Whether the functions have as many parameters, and the types at the same places have the same size.
template <class Own, class... Owns, class Theirs, class... Their>
constexpr bool alike(Own (*)(Owns...), Theirs (*)(Their...)) {
    if constexpr (sizeof...(Owns) == sizeof...(Their))
        return sizeof(Own) == sizeof(Theirs) && ((sizeof(Owns) == sizeof(Their)) && ...);
    return false;
}
#define ALIKE(own, theirs) static_assert(alike(decltype(masquerade::NcclLibrary::own){}, decltype(&theirs){}), #theirs)

ALIKE(get_unique_id, ncclGetUniqueId);
ALIKE(comm_init_rank, ncclCommInitRank);
ALIKE(comm_destroy, ncclCommDestroy);
ALIKE(comm_get_async_error, ncclCommGetAsyncError);
ALIKE(send, ncclSend);
ALIKE(recv, ncclRecv);
ALIKE(group_start, ncclGroupStart);
ALIKE(group_end, ncclGroupEnd);
ALIKE(get_error_string, ncclGetErrorString);
static_assert(masquerade::NcclLibrary::of_bytes == ncclInt8 &&
              sizeof(masquerade::NcclLibrary::Id) == sizeof(ncclUniqueId));

}  // namespace
#endif
