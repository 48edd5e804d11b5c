// SPDX-License-Identifier: MIT
// The two functions that libmasquerade_mpi.so exports (engine/mpi/mpi.cpp).
#pragma once
#include "engine/base/processes.h"

// A program opens only a library that was built with the same stamp. Change the number whenever Processes changes.
inline constexpr const char* mpi_stamp = "masquerade mpi, interface 4";

extern "C" {
const char* masquerade_mpi_stamp();
// Starts MPI. The result lives until the process ends.
masquerade::Processes* masquerade_mpi_join();
}
