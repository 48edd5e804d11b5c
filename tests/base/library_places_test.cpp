// SPDX-License-Identifier: MIT
// Tests the search for libcublasLt and libnccl (library_places.h) in folders that the test makes, and the error message
// if no library can be opened.
#include "engine/base/library_places.h"

#include <map>

#include "tests/cuda/fake_device.h"
#include "tests/folder.h"

using namespace masquerade;

namespace {

std::map<std::string, std::string> variables;

struct Machine {
    TemporaryFolder folder;
    LibrarySearch search = cublas_search(99);

    Machine() {
        variables.clear();
        search.root = folder.path;
        search.variable = [](const char* name) -> const char* {
            auto found = variables.find(name);
            return found == variables.end() ? nullptr : found->second.c_str();
        };
    }
    std::string make(const std::string& path) const {
        std::filesystem::create_directories(folder.file(path));
        return folder.file(path);
    }
    // Makes a folder that contains an empty file with the name of the library.
    void fill(const std::string& path) const {
        make(path);
        folder.write(path + "/libcublasLt.so.99", "");
    }
    // Makes a Python installation in the folder `where`: bin/python3, and the cuBLAS that the package nvidia/`package`
    // brings.
    void make_python(const std::string& where, const std::string& version, const std::string& package) const {
        make(where + "/bin");
        folder.write(where + "/bin/python3", "");
        fill(where + "/lib/" + version + "/site-packages/nvidia/" + package + "/lib");
    }
    void link(const std::string& name, const std::string& to) const {
        std::filesystem::create_symlink(folder.file(to), folder.file(name));
    }
    // Returns places_of(search), with the root and the name of the library cut off from each place.
    std::vector<std::string> places() const {
        std::vector<std::string> all = places_of(search);
        for (std::string& place : all) {
            if (place.compare(0, folder.path.size(), folder.path) == 0) place.erase(0, folder.path.size());
            const std::size_t end = place.rfind("/libcublasLt.so.99");
            if (end != std::string::npos) place.erase(end);
        }
        return all;
    }
};

using Places = std::vector<std::string>;

}  // namespace

TEST_CASE("library places: a bare machine has the loader's own, one with a toolkit its folders") {
    const Machine machine;
    CHECK(machine.places() == Places{"libcublasLt.so.99"});
    for (const char* toolkit : {"usr/local/cuda", "opt/cuda"})
        for (const char* folder : {"/targets/x86_64-linux/lib", "/lib", "/lib64"}) machine.fill(text(toolkit, folder));
    CHECK(machine.places() == Places{"libcublasLt.so.99", "/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                     "/usr/local/cuda/targets/x86_64-linux/lib", "/opt/cuda/lib64", "/opt/cuda/lib",
                                     "/opt/cuda/targets/x86_64-linux/lib"});
}

TEST_CASE("library places: what the variable names, and then nothing else") {
    const Machine machine;
    machine.fill("usr/local/cuda/lib64");
    variables["MASQUERADE_CUBLAS"] = machine.make("mine");
    CHECK(machine.places() == Places{"/mine"});
    variables["MASQUERADE_CUBLAS"] = machine.folder.write("mine/lt.so", "");
    CHECK(machine.places() == Places{"/mine/lt.so"});
    variables["MASQUERADE_CUBLAS"] = "";
    CHECK(machine.places().size() == 2);
}

TEST_CASE("library places: toolkits by variable, by default and by version, each once") {
    const Machine machine;
    for (const char* name : {"cuda-99", "cuda-99.2", "cuda-99.3", "cuda-9", "cuda-990", "cuda-98.1"})
        machine.fill(text("usr/local/", name, "/lib64"));
    machine.link("usr/local/cuda", "usr/local/cuda-99.2");
    std::filesystem::create_directory_symlink("lib64", machine.folder.file("usr/local/cuda-99.2/lib"));
    variables["CUDA_HOME"] = machine.folder.file("home");
    machine.fill("home/lib64");
    variables["CUDA_PATH"] = machine.folder.file("usr/local/cuda-99");
    CHECK(machine.places() == Places{"libcublasLt.so.99", "/home/lib64", "/usr/local/cuda-99/lib64",
                                     "/usr/local/cuda/lib64", "/usr/local/cuda-99.3/lib64"});
}

TEST_CASE("library places: beside the packages of every Python") {
    const Machine machine;
    machine.make_python("venv", "python3.9", "cublas");
    machine.make_python("venv", "python3.12", "cu99");
    machine.fill("venv/lib/python3.12/site-packages/nvidia/cublas/lib");
    machine.fill("venv/lib/python3.12/site-packages/nvidia/cu98/lib");
    machine.fill("venv/lib/python2.7/site-packages/nvidia/cublas/lib");
    machine.make_python("real", "python3.11", "cublas");
    machine.make("shims");
    machine.link("shims/python3", "real/bin/python3");  // the packages lie beside the real python3
    machine.make("empty");                              // a folder of PATH without python3
    machine.fill("active/lib/python3.12/site-packages/nvidia/cublas/lib");
    machine.fill("user/.local/lib/python3.12/site-packages/nvidia/cublas/lib");
    machine.fill("usr/local/lib/python3.12/dist-packages/nvidia/cublas/lib");
    machine.fill("usr/lib/python3/dist-packages/nvidia/cublas/lib");
    variables["PATH"] = machine.folder.file("empty") + "::" + machine.folder.file("shims") + ":" +
                        machine.folder.file("venv/bin") + ":" + machine.folder.file("missing");
    variables["PATH"] += ":" + machine.folder.file("venv/bin");
    variables["VIRTUAL_ENV"] = machine.folder.file("active");
    variables["HOME"] = machine.folder.file("user");
    Places all = machine.places();
    all.erase(all.begin());
    CHECK(all == Places{"/real/bin/../lib/python3.11/site-packages/nvidia/cublas/lib",
                        "/venv/bin/../lib/python3.12/site-packages/nvidia/cu99/lib",
                        "/venv/bin/../lib/python3.12/site-packages/nvidia/cublas/lib",
                        "/venv/bin/../lib/python3.9/site-packages/nvidia/cublas/lib",
                        "/active/lib/python3.12/site-packages/nvidia/cublas/lib",
                        "/user/.local/lib/python3.12/site-packages/nvidia/cublas/lib",
                        "/usr/local/lib/python3.12/dist-packages/nvidia/cublas/lib",
                        "/usr/lib/python3/dist-packages/nvidia/cublas/lib"});
}

TEST_CASE("library places: NCCL is searched beside every toolkit, and in its own Python package") {
    Machine machine;
    machine.search.file = nccl_search().file, machine.search.named_by = nccl_search().named_by;
    machine.search.toolkits = nccl_search().toolkits, machine.search.package = nccl_search().package;
    const std::vector<std::string> folders = {"/usr/local/cuda/lib", "/usr/local/cuda-99.1/lib64",
                                              "/usr/lib/python3.12/site-packages/nvidia/nccl/lib"};
    Places expected = {"libnccl.so.2"};
    for (const std::string& folder : folders) {
        machine.make(folder.substr(1));
        expected.push_back(machine.folder.write(folder.substr(1) + "/libnccl.so.2", ""));
    }
    machine.fill("usr/local/cuda/lib");
    CHECK(places_of(machine.search) == expected);
    variables["MASQUERADE_NCCL"] = "/mine/nccl.so";
    CHECK(places_of(machine.search) == Places{"/mine/nccl.so"});
}

TEST_CASE("library places: the first that opens is taken, and where none does each is accounted for") {
    const Machine machine;
    const std::string broken = machine.make("usr/local/cuda/lib64") + "/libcublasLt.so.99";
    std::ofstream(broken) << "no library";
    const OpenedLibrary none = open_first(machine.search);
    CHECK(none.library == nullptr);
    CHECK(none.reason.find("no libcublasLt.so.99 can be opened; libcublasLt.so.99: ") == 0);
    CHECK(none.reason.find("; " + broken + ": ") != std::string::npos);
    CHECK(none.reason.find("; install cuBLAS of CUDA 99, or name the file or its folder in MASQUERADE_CUBLAS") !=
          std::string::npos);
    CHECK(none.reason.find('\n') == std::string::npos);

    const std::string good = machine.make("opt/cuda/lib") + "/libcublasLt.so.99";
    std::filesystem::copy_file(beside_the_tests("partial_cuda.so"), good);
    const OpenedLibrary found = open_first(machine.search);
    CHECK(found.library != nullptr);
    CHECK(found.place == good);
    CHECK(found.reason == "");
    if (found.library) dlclose(found.library);

    variables["MASQUERADE_CUBLAS"] = broken;
    CHECK(open_first(machine.search).library == nullptr);  // although the library in opt/cuda/lib could be opened
    variables["MASQUERADE_CUBLAS"] = machine.folder.file("nowhere");
    CHECK(
        open_first(machine.search).reason ==
        text("no libcublasLt.so.99 can be opened; ", machine.folder.file("nowhere"),
             ": cannot open shared object file: No such file or directory; install cuBLAS of CUDA 99, or name the file "
             "or its folder in MASQUERADE_CUBLAS"));
}
