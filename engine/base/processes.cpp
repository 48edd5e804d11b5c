// SPDX-License-Identifier: MIT
#include "engine/base/processes.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/mpi_library.h"
#include "engine/base/shared_library.h"
#include "input/open_file.h"

namespace masquerade {
namespace {

class OneProcess : public Processes {
  public:
    int rank() const override { return 0; }
    int count() const override { return 1; }
    void exchange(const std::vector<Bytes>&, const std::vector<Bytes>&, int) override {}
    void abort(int status) override { std::_Exit(status); }
    void leave() override {}
};

// The environment variables in which a launcher tells a process its rank and the number of processes, of all and of
// those on its machine. srun sets SLURM_STEP_NUM_TASKS; SLURM_NTASKS is also set where no srun has started anything.
// torchrun comes first, because srun may have started torchrun. Other programs set RANK and WORLD_SIZE, too, but
// TORCHELASTIC_RUN_ID is set by torchrun alone.
struct Launcher {
    const char *name, *rank, *count, *local_rank, *local_count;
    const char* also = nullptr;  // a variable that must be set
    bool mpi = true;
};
constexpr Launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", false},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
};

// Returns the number at the beginning of the variable, or `otherwise` if there is none. SLURM_STEP_TASKS_PER_NODE can
// be "4(x2)".
int number_in(const char* variable, int otherwise) {
    const char* value = std::getenv(variable);
    return value && *value >= '0' && *value <= '9' ? std::atoi(value) : otherwise;
}

thread_local Processes* joined = nullptr;  // only the thread that trains uses it

}  // namespace

Processes& processes() {
    static OneProcess one;
    return joined ? *joined : one;
}

void use_processes(Processes* all) { joined = all; }

Launch launched() {
    for (const Launcher& by : launchers)
        if (number_in(by.rank, -1) >= 0 && number_in(by.count, 1) > 1 && (!by.also || std::getenv(by.also)))
            return {by.name,
                    number_in(by.rank, 0),
                    number_in(by.count, 1),
                    number_in(by.local_rank, 0),
                    std::max(1, number_in(by.local_count, 1)),
                    by.mpi};
    return {};
}

void join_processes() {
    const auto [by, rank, count, local_rank, local_count, mpi] = launched();
    if (count == 1 || joined) return;
    // Otherwise every process would print the same text and notes. Errors are still printed.
    if (rank > 0) {
        quiet_log = true;
        dup2(OpenFile("/dev/null", O_WRONLY), STDOUT_FILENO);
    }
    if (!mpi) return;
    const std::string path = find_library("libmasquerade_mpi.so", "MASQUERADE_MPI");
    if (path.empty())
        throw BadInput(by, " has started ", count,
                       " processes, but there is no libmasquerade_mpi.so, which they need to exchange gradients: run "
                       "make deps-mpi and then make, or start a single process");
    void* const library = open_library(path, "the MPI library");
    const auto stamp = reinterpret_cast<decltype(&masquerade_mpi_stamp)>(dlsym(library, "masquerade_mpi_stamp"));
    const auto join = reinterpret_cast<decltype(&masquerade_mpi_join)>(dlsym(library, "masquerade_mpi_join"));
    if (!stamp || !join || std::strcmp(stamp(), mpi_stamp) != 0)
        throw BadInput("the MPI library ", path, " was built for another version: expected \"", mpi_stamp, "\", found ",
                       stamp ? text('"', stamp(), '"') : "no stamp", "; run make");
    Processes* all = join();
    all->log_error = [](const std::string& why) { log_line("error: ", why); };
    use_processes(all);
    if (all->rank() != rank || all->count() != count) {
        const std::string found = text("rank ", all->rank(), " of ", all->count());
        use_processes(nullptr);
        throw BadInput(by, " has started this process as rank ", rank, " of ", count, ", but MPI calls it ", found,
                       ": start it with the mpirun of the MPI that ", path, " was built with (",
                       all->count() == 1 ? "or, with srun, try --mpi=pmix" : "make builds it anew", ")");
    }
}

ByItself::ByItself() : all_(joined) { use_processes(nullptr); }

void gather(const std::vector<Bytes>& parts, int line) {
    Processes& all = processes();
    const Bytes mine = parts[all.rank()];
    all.exchange(std::vector<Bytes>(parts.size(), mine), parts, line);
}

std::vector<std::string> gather_messages(const std::string& mine, int line) {
    std::vector<std::string> messages;
    for (std::size_t size : gather_values(mine.size(), line)) messages.emplace_back(size, 0);
    messages[processes().rank()] = mine;
    std::vector<Bytes> parts;
    for (std::string& each : messages) parts.push_back({each.data(), each.size()});
    gather(parts, line);
    return messages;
}

std::pair<std::size_t, std::size_t> own_items(std::size_t n, std::size_t together) {
    const std::size_t groups = (n + together - 1) / together, count = processes().count(), own = processes().rank();
    const auto begin = [&](std::size_t rank) { return std::min(n, groups * rank / count * together); };
    return {begin(own), begin(own + 1)};
}

}  // namespace masquerade
