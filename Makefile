# SPDX-License-Identifier: MIT
# make              the programs: ./train ./generate ...          make deps     install what is needed (Debian)
# make test         the tests; ONLY='layernorm*' some cases,      make data     the default corpora, into corpus/
#                   FROM=tests/ops some files                     make install  library, headers, pkg-config (PREFIX)
#                   KERNELS=engine/ops/gate.cpp those kernels alone, with FROM=tests/emulator/ladder
# make asan tsan    the tests under sanitizers                    make debug    the programs at -O0, for gdb
# make deps-mpi     install OpenMPI (Debian): with it, make also builds what several processes need to train together
# make deb          a Debian package of the programs and the library (MARCH=x86-64-v3: for other machines, too)
# make bench        ./bench, which times everything
# make fuzz         strange text through the tokenizer, broken files through all that reads them, parts of several runs through
#                   all that loads runs, under sanitizers (TARGET=tokenizer, readers or runs; MINUTES=10: of the first two and
#                   of the last, shared; EACH=1: for each of them; SEED=1)
# make cuda         the CUDA half; plain make builds it only for a GPU that answers here (CUDA_ARCHS='80 90': for these)
# make cuda-check   the CUDA half, for one GPU, warnings are errors   make clean
# make ptx-test     the CUDA library on the CPU: what nvcc makes of its kernels, translated from PTX (ONLY='gpu: layernorm*',
#                   WITHOUT='sinkhorn flow' if the tests never call these ops, whose kernels take long to translate)
# make mutants      plants errors, each of which a test must catch (ONLY='tape*', JOBS=2); needs python3 and git
# make gpu-test     every op on the GPU, where one answers
# make gpu-bench    training, attention and decoding on the GPU, beside PyTorch (GPU_PYTHON=..., GPU_OUT=folder)
# make lab LAB=02      what holds of docs/labs/02/lab.cpp, or of FILE=another.cpp (STUDENT=name: with the numbers that a class
#                   with numbers of its own for each student draws from the name; ASAN=no: without AddressSanitizer)
# make student DIR=../students   the tree for students: no solutions, and where each lab starts
# make format          all C++ and CUDA code as .clang-format says (clang-format 14); make size: tokens of code by folder
# make tidy            the checks of .clang-tidy on all code, or on FILES='engine/nn/*.cpp' (clang-tidy 14; ten minutes)
# make book            the book as web pages with a search, build/book/site/index.html, without the solutions of the labs
#                   (SOLUTIONS=yes: with them, also on paper)
# make book-publish TO=www:/srv/book   the book as web pages, copied to a folder, here or on another machine, by rsync
# make book-pdf        the book on paper: build/book/book.pdf
# make slides          the slides of the course: build/slides/NN-name.html, one file a week, for a browser and for paper
# make deps-book       install what these need (Debian): MkDocs, KaTeX, rsync and, for the paper, Chromium
# Also: CONFIG=debug for any target, MARCH=x86-64-v3 for a machine other than this one, V=1 to see the commands,
# CXX=clang++ for another compiler, CXX=aarch64-linux-gnu-g++ MARCH=armv8.2-a for another processor,
# UNIT=1 to compile each file by itself (else up to 16 of a folder at once: faster for all, slower for one that changes),
# DEPS=folder with the headers of fmt, nlohmann-json, CLI11 and doctest, NVCC=none for the CPU only, BUILDS=folder instead
# of build/.

CXX    ?= g++
NVCC   ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc /opt/cuda/bin/nvcc) nvcc)
CONFIG ?= release
MARCH  ?= native
PREFIX ?= /usr/local
BUILDS := build
# An installed file names PREFIX, and may be read anywhere. Not every shell expands ~ in an argument of make.
override PREFIX := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
override PREFIX := $(if $(filter-out /%,$(firstword $(PREFIX))),$(CURDIR)/)$(PREFIX)
$(if $(BUILDS),,$(error BUILDS is empty; expected the name of a folder))
BUILD  := $(BUILDS)/$(CONFIG)
Q      := $(if $(V),,@)
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)  # -j on the command line wins
endif

programs := $(patsubst tools/%.cpp,%,$(wildcard tools/*.cpp))
shown    := $(filter-out corpus,$(programs))
# $(call quoted,TEXT): one word of a shell command, whatever is in the text.
quoted = '$(subst ','\'',$1)'

# `make deps test`: install first, then start afresh, so that detection sees what was installed (also with -j).
later := $(if $(filter deps,$(MAKECMDGOALS)),$(filter-out deps,$(MAKECMDGOALS)))
ifneq ($(later),)
.PHONY: deps afterwards $(later)
$(later): afterwards ; @:
afterwards: deps ; @$(MAKE) $(later)
deps: ; @$(MAKE) deps
# `make clean all`: one goal after another, because make writes files when it reads the rules, and `clean` deletes them.
else ifneq ($(and $(filter clean,$(MAKECMDGOALS)),$(word 2,$(MAKECMDGOALS))),)
.PHONY: in_order $(MAKECMDGOALS)
$(sort $(MAKECMDGOALS)): in_order ; @:
in_order: ; @$(foreach goal,$(MAKECMDGOALS),$(MAKE) $(goal) &&) :
else ifeq ($(MAKECMDGOALS),clean)
.PHONY: clean
# A folder that BUILDS names may hold other things, too: only the parts that the build has made there are deleted.
clean:
ifeq ($(BUILDS),build)
	@rm -rf build
else
	@[ ! -e $(call quoted,$(BUILDS)/compilers) ] || rm -rf $(foreach part,release debug asan tsan walks units cuda cuda-ptx ptx \
	    book slides config.mk library_folder compilers,$(call quoted,$(BUILDS)/$(part)))
	@rmdir $(call quoted,$(BUILDS)) 2> /dev/null || true
endif
	@for program in $(shown); do [ -e $$program ] || rm -f $$program; done  # links that now lead nowhere
else

# ---- what is here ---------------------------------------------------------------------------------------------------
# $(call stamp,FILE,TEXT): a file that changes when the text does, for rules to depend on.
stamp = $(shell mkdir -p $(dir $1); echo '$2' | cmp -s - $1 || echo '$2' > $1)
$(call stamp,$(BUILDS)/compilers,$(CXX) $(NVCC) $(DEPS) $(shell command -v mpicxx 2> /dev/null))
include $(BUILDS)/config.mk
$(BUILDS)/config.mk: tools/make/detect.sh $(BUILDS)/compilers $(wildcard /var/lib/dpkg/status)
	@CXX='$(CXX)' NVCC='$(NVCC)' DEPS='$(DEPS)' $< > $@.$$$$ && mv $@.$$$$ $@

sources  := $(sort $(shell find $(wildcard input engine tokenizer data models) -name '*.cpp' -not -path 'engine/ops/cuda/*' \
              -not -path 'engine/mpi/*'))
tests    := $(sort $(shell find tests -name '*.cpp' -not -path 'tests/golden/*' -not -path 'tests/fuzz/*' -not -path 'tests/faults/*' \
              -not -path 'tests/cuda/library/*' -not -path 'tests/nccl/*' -not -path 'tests/ptx/*'))
ifdef FROM
ifneq ($(filter tests/base% tests/emulator% tests/math% tests/nn% tests/ops% tests/tape% tests/tensor%,$(FROM)),)
narrow   := engine
sources  := $(filter input/% engine/%,$(sources))  # all that these need
endif
tests    := $(filter $(FROM)% %/main.cpp,$(tests)) $(filter-out $(FROM)% %_test.cpp %/main.cpp,$(tests))
endif
row_ops  := $(shell grep -ls 'engine/ops/launch.h' engine/ops/*.cpp)
kernels  := $(row_ops) $(shell grep -ls 'engine/ops/launch.h' engine/ops/cuda/*.cu) $(wildcard tests/emulator/*.cu)
ifneq ($(and $(FROM),$(if $(filter $(FROM)%,tests/emulator/ tests/cuda/)$(filter tests/emulator/% tests/cuda/%,$(FROM)),,yes)),)
kernels  :=  # only the tests of tests/emulator and tests/cuda run them
endif
ifdef KERNELS
kernels  := $(KERNELS)
endif
library  := $(BUILD)/lib$(or $(narrow),masquerade).a
object    = $(patsubst %.cpp,$(BUILD)/obj/%.o,$1)
# $(call objects,FILES): the objects of whole folders. Up to UNIT files of a folder are compiled together (a unit,
# tools/make/units.sh), so that their headers are read once. If you change code often, UNIT=1 compiles each file by itself.
# Ops are never in a unit, because their kernels take the time; programs are not, because each has a main(); the emulator,
# the fuzzers and ./bench are not, because their files use the same names.
UNIT     ?= 16
alone    := engine/base/shared_library.cpp engine/ops/% tests/emulator/% tests/fuzz/% tools/bench/% $(wildcard tools/*.cpp)
objects   = $(call object,$(filter $(alone),$1)) \
            $(patsubst %,$(BUILD)/obj/%.o,$(shell tools/make/units.sh $(BUILDS)/units $(UNIT) $(filter-out $(alone),$1)))

version  := $(shell sed -n 's/.*version = "\(.*\)".*/\1/p' engine/base/version.h)

# ---- flags ----------------------------------------------------------------------------------------------------------
# Of C++20 lambdas may name their types, and no more: its standard headers take a fifth longer to compile. nvcc has lambdas
# so in C++20 alone.
# A file that a unit includes is "./engine/..." to the compiler; -ffile-prefix-map takes the "./" away for gdb and messages.
# Never -ffast-math or -Ofast: NaN and infinity must mean what they say, and a sum keeps its order.
# g++ tunes for vectors of 256 bits even where 512 are to be had; rows of numbers gain a third by the wide ones.
optimise_release := -O3 -g1 $(WIDE_VECTORS)
optimise_debug   := -O0 -g3 -D_GLIBCXX_ASSERTIONS
# What null, object-size and pointer-overflow would find, address finds where the memory is read or written; without them
# a file compiles in a quarter less.
optimise_asan    := -O1 -g1 -D_GLIBCXX_ASSERTIONS -fno-omit-frame-pointer -fno-sanitize-recover=all \
                    -fsanitize=address,undefined -fno-sanitize=null,object-size,pointer-overflow
optimise_tsan    := -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
ifeq ($(optimise_$(CONFIG)),)
$(error CONFIG=$(CONFIG) is unknown; there are release, debug, asan, tsan)
endif
flags := -std=c++17 -I. -ffile-prefix-map=./= -Wall -Wextra $(WARNINGS) $(optimise_$(CONFIG)) -march=$(MARCH) -fPIC -fvisibility=hidden -pthread -fopenmp-simd \
         -ffp-contract=off -fno-math-errno $(DEPS_FLAGS) $(CPPFLAGS) $(CXXFLAGS)
libs  := $(LDFLAGS) $(FMT_LIB) -ldl
# The one name that a device library finds in the program that opens it: tests/cuda/library/fake.cpp computes by it.
shows := -Wl,--export-dynamic-symbol=masquerade_cpu_ops

# The CUDA half: row and point ops, which are one file for both devices, and engine/ops/cuda. Code for each architecture;
# besides, to be compiled when it is opened: that of sm_90 for those between it and the newest, of the newest for those
# to come.
# The library is built for the GPUs that answer here. If none does, it is built only when asked for, for all of ALL_ARCHS.
ifeq ($(origin CUDA_ARCHS),undefined)
cuda_wanted  := $(or $(GPU_ARCHS),$(filter cuda cuda-objects install,$(MAKECMDGOALS)),$(findstring libmasquerade_cuda,$(MAKECMDGOALS)))
CUDA_ARCHS   := $(or $(if $(filter install,$(MAKECMDGOALS)),,$(GPU_ARCHS)),$(ALL_ARCHS))
else
cuda_wanted  := $(CUDA_ARCHS)
endif
CUDA_BUILD   := $(BUILDS)/cuda
cuda_library := $(CUDA_BUILD)/libmasquerade_cuda.so
cuda_sources := $(row_ops) $(wildcard engine/ops/cuda/*.cu)
cuda_objects := $(patsubst %,$(CUDA_BUILD)/%.o,$(basename $(cuda_sources)))
and_source    = $(if $(filter 90 $(lastword $(CUDA_ARCHS)),$1),$(comma)compute_$1)
comma        := ,
nvcc_flags   := -std=c++20 -I. --expt-relaxed-constexpr -O3 -fmad=false -Xcompiler -fPIC,-fvisibility=hidden,-Wall \
                $(foreach arch,$(CUDA_ARCHS),-gencode 'arch=compute_$(arch),code=[sm_$(arch)$(call and_source,$(arch))]') \
                $(NVCC_STRICT)
ifneq ($(and $(filter 1,$(NVCC_WORKS)),$(cuda_wanted)),)
cuda_here    := $(BUILD)/libmasquerade_cuda.so
endif
$(call stamp,$(BUILD)/flags,$(CXX) $(flags) $(libs))
# run.json names the commit of the sources; + means that they have been changed since. Sources without a history of their
# own have none, also inside of another repository.
commit := $(if $(wildcard .git),$(shell git describe --always --abbrev=12 --dirty=+ 2> /dev/null))
$(call stamp,$(BUILD)/commit,$(commit))
$(BUILD)/obj/tools/train.o: $(BUILD)/commit
defines_tools/train = -DCOMMIT='"$(commit)"'
of_library   := $(call objects,$(sources))
of_tests     := $(call objects,$(tests))
of_tools     := $(call objects,$(sort $(wildcard tools/*.cpp tools/*/*.cpp)))
$(call stamp,$(library).list,$(sources))
$(call stamp,$(BUILD)/tests.list,$(tests) $(kernels))
$(call stamp,$(BUILDS)/library_folder,$(PREFIX)/lib)
ifneq ($(and $(or $(cuda_here),$(filter ptx-test,$(MAKECMDGOALS))),$(filter-out lab student book book-pdf book-publish slides,$(or $(MAKECMDGOALS),all))),)
$(call stamp,$(CUDA_BUILD)/flags,$(NVCC) $(subst ','\'',$(nvcc_flags)))
$(call stamp,$(CUDA_BUILD)/objects,$(cuda_objects))
endif

# ---- programs and library -------------------------------------------------------------------------------------------
.PHONY: all cuda format size tidy compile_commands.json debug debug-programs walks deps deps-mpi data test test-program run-tests mutants asan tsan fuzz run-fuzz cuda-check cuda-objects gpu-test gpu-bench ptx-test install install-programs deb library lab student book book-pdf book-publish slides deps-book needs needs-tests $(shown)
mpi_here := $(if $(filter 1,$(MPI_WORKS)),$(BUILD)/libmasquerade_mpi.so)
walked   := inspect train
stops    := engine/ops/% engine/nn/% engine/tape/% models/masks/% models/nets/%
first    := $(filter-out bench,$(shown))  # a fifth of the compiling is ./bench, which nobody needs to train
all: $(first) $(cuda_here) $(mpi_here)
	@echo 'built $(first:%=./%) ($(CONFIG), $(MARCH), $(if $(cuda_here),CUDA for $(CUDA_ARCHS:%=sm_%),CPU only))'
	@for note in $(NOTES); do echo "note: $$note"; done
# For gdb, which walks on the CPU: ./train and the others stay the fast ones. A CUDA library that is there goes with them.
debug: ; @$(MAKE) CONFIG=debug debug-programs
debug-programs: $(first:%=$(BUILD)/%) $(if $(wildcard $(cuda_library)),$(cuda_here))
	@echo 'built $(first:%=build/debug/%): for gdb, see docs/debugging.md'
# For tests/book.sh, which repeats the walks through gdb of the pages: compiled as `make debug` does where the walks stop,
# and taken from the release elsewhere. This compiles in less than half the time. The commands of the pages need corpus.
walks: $(walked:%=$(BUILDS)/release/%) $(BUILDS)/release/corpus ; @$(MAKE) CONFIG=debug $(walked:%=$(BUILDS)/walks/%)
released  = $(patsubst $(BUILD)/%,$(BUILDS)/release/%,$(BUILD)/obj/tools/$1.o $(call of_tool,$1 program options plot) $(library))
define walk
$(BUILDS)/walks/$1: $(call objects,$(filter $(stops),$(sources))) $(call released,$1)
	@mkdir -p $$(@D)
	@echo '  link $$@'
	$(Q)$(CXX) $(flags) $$^ $(libs) $(shows) -o $$@
endef

$(shown): %: $(BUILD)/%
	@ln -sfn $< $@
$(programs:%=$(BUILD)/%): $(BUILD)/%: $(BUILD)/obj/tools/%.o $(library)
	@echo '  link $@'
	$(Q)$(CXX) $(flags) $(filter %.o,$^) $(library) $(libs) $(shows) -o $@
# A program that has a folder of its own is linked with what is in it. $(call of_tool,NAMES): the objects of these folders.
of_tool       = $(filter $(1:%=$(BUILD)/obj/tools/%/%),$(of_tools))
$(foreach p,$(programs),$(eval $(BUILD)/$p: $(call of_tool,$p)))
$(if $(filter debug,$(CONFIG)),$(foreach p,$(walked),$(eval $(call walk,$p))))
$(programs:%=$(BUILD)/%): $(call of_tool,program options)
$(BUILD)/bench $(BUILD)/inspect: $(call of_tool,plot)
$(library): $(of_library) $(library).list
	@echo '  ar   $@'
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)
$(BUILD)/obj/%.o: %.cpp $(BUILD)/flags | needs
	@mkdir -p $(@D)
	@echo '  c++  $<'
	$(Q)$(CXX) $(flags) $(defines_$*) -MMD -MP -c $< -o $@
$(BUILD)/obj/%.o: $(BUILDS)/units/%.cpp $(BUILD)/flags | needs
	@mkdir -p $(@D)
	@echo '  c++  $(patsubst $(BUILDS)/units/%.cpp,%,$<)'
	$(Q)$(CXX) $(flags) -MMD -MP -c $< -o $@
# Tests, programs and the tables of checks leave the work to the ops, and compile in two thirds of the time this way. The
# emulator works.
ifeq ($(CONFIG),asan)  # these files do little work
$(foreach folder,engine/io engine/nn engine/tape engine/train models tests/fuzz,$(BUILD)/obj/$(folder)/%.o): private flags += -O0
endif
ifeq ($(CONFIG),release)
$(BUILD)/obj/engine/check/%.o $(BUILD)/obj/models/runs/%.o $(BUILD)/fibers/%.o: private flags += -O1
$(BUILD)/obj/tests/%.o $(BUILD)/obj/tools/%.o: private flags += -O1
$(BUILD)/obj/tests/models/%.o $(BUILD)/obj/tests/tools/%.o $(BUILD)/obj/tests/io/%.o: private flags += -O0
$(BUILD)/obj/tests/emulator/%.o: private flags += -O3
$(call object,$(filter tests/emulator/%_test.cpp,$(tests))): private flags += -O1
endif
-include $(patsubst %.o,%.d,$(of_library) $(of_tests) $(of_tools) $(call object,$(wildcard tests/fuzz/*.cpp)))

# What all ops of rows include is compiled once, as it takes half of the time of most of them at -O0, and a third at -O3.
$(BUILD)/row_ops.h.gch: engine/ops/launch.h $(BUILD)/flags | needs
	@echo '  c++  $<'
	@echo '#include "$<"' > $(@:.gch=)
	$(Q)$(CXX) $(flags) -MMD -MP -x c++-header $(@:.gch=) -o $@
$(call object,$(row_ops)): $(BUILD)/row_ops.h.gch
$(call object,$(row_ops)): private flags += -include $(BUILD)/row_ops.h
-include $(BUILD)/row_ops.h.d

# Where installed libraries are looked for.
$(BUILD)/obj/engine/base/shared_library.o: private flags += -DMASQUERADE_LIBRARY_FOLDER='"$(PREFIX)/lib"'
$(BUILD)/obj/engine/base/shared_library.o: $(BUILDS)/library_folder

# What is missing may come without dpkg, too: the next make looks again.
needs: ; @$(if $(MISSING),rm -f $(BUILDS)/config.mk; echo 'missing: $(MISSING). Run: make deps' >&2; exit 1)
needs-tests: needs ; @$(if $(MISSING_TESTS),rm -f $(BUILDS)/config.mk; echo 'missing: $(MISSING_TESTS). Run: make deps' >&2; exit 1)

# ---- the C interface ------------------------------------------------------------------------------------------------
soname   := libmasquerade.so.$(word 1,$(subst ., ,$(version)))
of_interface := $(call objects,$(wildcard library/*.cpp))
shared   := $(BUILD)/$(soname) $(BUILD)/libmasquerade.so
library: $(shared)
$(BUILD)/$(soname): $(of_interface) $(call of_tool,options generate) $(library) library/exports.map
	@echo '  link $@'
	$(Q)$(CXX) $(flags) -shared $(filter %.o %.a,$^) $(libs) -Wl,-soname,$(soname),-Bsymbolic,-z,defs \
	    -Wl,--version-script=library/exports.map,--wrap=__cxa_atexit,-z,nodelete -o $@
$(BUILD)/libmasquerade.so: $(BUILD)/$(soname) ; @ln -sfn $(<F) $@
-include $(of_interface:.o=.d)

# ---- the MPI library ------------------------------------------------------------------------------------------------
$(BUILD)/libmasquerade_mpi.so: engine/mpi/mpi.cpp $(BUILD)/flags
	@echo '  c++  $<'
	$(Q)OMPI_CXX='$(CXX)' mpicxx $(flags) -fvisibility=default -DOMPI_SKIP_MPICXX -shared -MMD -MP $< -o $@
-include $(BUILD)/libmasquerade_mpi.d

# ---- the CUDA library -----------------------------------------------------------------------------------------------
$(BUILD)/libmasquerade_cuda.so: $(cuda_library)
	@ln -sfn ../cuda/libmasquerade_cuda.so $@
$(cuda_library): $(cuda_objects) $(CUDA_BUILD)/objects engine/ops/cuda/exports.map
	@echo '  link $@'
	$(Q)$(NVCC) -shared -cudart static -nodlink $(filter %.o,$^) -o $@ \
	    -Xlinker -Bsymbolic,-z,defs,--version-script=engine/ops/cuda/exports.map
# For one architecture alone, the PTX of a file is left beside its object.
one_arch := $(filter 1,$(words $(CUDA_ARCHS)))
define nvcc_compile
	@mkdir -p $(@:.o=.kept)
	@echo '  nvcc $<'
	$(Q)$(NVCC) -x cu $(nvcc_flags) $(if $(one_arch),-keep -keep-dir $(@:.o=.kept)) -MMD -MP -c $< -o $@
	@$(if $(one_arch),mv $(@:.o=.kept)/*.ptx $(@:.o=.ptx);) rm -r $(@:.o=.kept)
endef
$(CUDA_BUILD)/%.o: %.cpp $(CUDA_BUILD)/flags ; $(nvcc_compile)
$(CUDA_BUILD)/%.o: %.cu $(CUDA_BUILD)/flags ; $(nvcc_compile)
# Kernels of tests, beside what NVIDIA's libraries compute: a library of its own where a GPU answers.
oracle  := $(CUDA_BUILD)/tests/cuda/oracle/curand.o
$(BUILD)/curand.so: $(oracle)
	@echo '  link $@'
	$(Q)$(NVCC) -shared -cudart static -nodlink $< -o $@
checked := $(cuda_objects) $(oracle) $(CUDA_BUILD)/tests/cuda/oracle/nccl.o $(patsubst %.cu,$(CUDA_BUILD)/%.o,$(wildcard tests/emulator/*.cu))
-include $(checked:.o=.d)
cuda-objects: $(checked)
cuda-check:
ifeq ($(NVCC_WORKS),1)
	@$(MAKE) cuda-objects CUDA_BUILD=build/cuda-check CUDA_ARCHS=80 NVCC_STRICT='-Werror all-warnings'
	@echo 'cuda-check: $(words $(checked)) files compile'
else
	@echo 'cuda-check: no working nvcc, nothing compiled'
endif

# ---- tests ----------------------------------------------------------------------------------------------------------
fakes := $(if $(filter tests/cuda/% tests/tools/%,$(tests)),$(patsubst tests/cuda/library/%.cpp,$(BUILD)/%_cuda.so,$(wildcard tests/cuda/library/*.cpp)))
fake_nccl := $(if $(fakes),$(BUILD)/fake_nccl.so)
# Where some files or cases are asked for, neither the programs nor the pages.
test: $(if $(FROM),,$(shown) $(cuda_here)) ; @$(if $(FROM)$(ONLY),,tests/book.sh &&) $(MAKE) run-tests
asan tsan: ; @$(MAKE) CONFIG=$@ run-tests
test-program: $(BUILD)/tests $(fakes) $(fake_nccl)
run-tests: test-program
	@tests/check_layers.sh
	@tools/make/plain_words.sh
	@$(BUILD)/tests $(if $(ONLY),--test-case='$(ONLY)')
	@$(if $(ONLY)$(FROM),,tests/mutants/check.sh)
$(BUILD)/tests: $(of_tests) $(if $(filter tests/tools/%_test.cpp,$(tests)),$(call of_tool,bench program options plot)) $(kernels:%=$(BUILD)/fibers/%.o) $(library) $(BUILD)/tests.list
	@echo '  link $@'
	$(Q)$(CXX) $(flags) $(filter %.o %.a,$^) $(libs) $(TEST_LIBS) $(shows) -o $@
$(of_tests): | needs-tests

# A copy of the sources with all errors of tests/mutants planted, compiled once; the tests run once for each.
mutants: ; @tests/mutants/check.sh needed && tests/mutants/mutants.py $(if $(ONLY),--only '$(ONLY)') --jobs $(or $(JOBS),$(shell nproc)) \
    -- CXX='$(CXX)' MARCH='$(MARCH)' $(if $(DEPS),DEPS='$(DEPS)')

cuda: $(cuda_here) ; @$(if $(cuda_here),echo 'built $< for $(CUDA_ARCHS:%=sm_%)',echo 'error: no working nvcc; install the CUDA Toolkit, or name it with NVCC=' >&2; exit 1)
format size: ; @tools/make/$@.sh
# All of the code takes ten minutes; FILES='engine/nn/*.cpp' some of it. clang 14 cannot read the bf16 products, which are for
# g++ alone.
tidy:
	@printf '%s\n' $(or $(FILES),$(sources) $(wildcard tools/*.cpp tools/*/*.cpp)) | xargs -n 4 -P $(shell nproc) sh -c \
	    'clang-tidy -quiet "$$@" -- -std=c++17 -I. -march=$(MARCH) -Wno-c++20-extensions 2>/dev/null' sh

# Where a GPU answers: every op there, up the ladder, and under compute-sanitizer; its speed, beside PyTorch's.
gpu-test: $(BUILD)/tests $(BUILD)/bench $(cuda_here) $(if $(cuda_here),$(BUILD)/curand.so) ; @tools/make/gpu_half_hour.sh test $(or $(GPU_OUT),build/gpu) $(BUILD)
gpu-bench: $(BUILD)/bench $(cuda_here) ; @tools/make/gpu_half_hour.sh bench $(or $(GPU_OUT),build/gpu) $(BUILD)

# Device libraries that need no GPU, linked as the real one is.
$(fakes): $(BUILD)/%_cuda.so: tests/cuda/library/%.cpp tests/cuda/library/exports.map $(BUILD)/flags
	@echo '  link $@'
	$(Q)$(CXX) $(flags) -fPIC -fvisibility=hidden -shared -Wl,-Bsymbolic,--version-script=$(word 2,$^) -MMD -MP $< -o $@
-include $(fakes:.so=.d)
$(BUILD)/fake_nccl.so: tests/nccl/fake.cpp $(BUILD)/flags
	@echo '  link $@'
	$(Q)$(CXX) $(flags) -fvisibility=default -shared -MMD -MP $< -o $@
-include $(BUILD)/fake_nccl.d

# What breaks a promise is left in build/fuzz-failure.
fuzz: ; @$(MAKE) CONFIG=asan run-fuzz
# Two programs: parts of runs need all models, which take minutes to compile under sanitizers, and the other targets do not.
fuzzers := $(if $(filter runs library,$(TARGET)),,$(BUILD)/fuzz) $(if $(filter-out runs library,$(TARGET)),,$(BUILD)/fuzz-runs)
run-fuzz: $(fuzzers)
	@for program in $(fuzzers); do $$program --minutes $(or $(MINUTES),10) --seed $(or $(SEED),1) --out build/fuzz-failure $(if $(EACH),--each) $(TARGET) || exit 1; done
of_runs := $(wildcard tests/fuzz/run*.cpp)
fuzzed  := $(filter input/% engine/% tokenizer/% models/runs/hugging_face/% models/masks/%,$(sources))
$(BUILD)/fuzz: $(call object,$(filter-out $(of_runs),$(wildcard tests/fuzz/*.cpp)) models/nets/backbone.cpp models/nets/attention_words.cpp) \
               $(call objects,$(fuzzed))
$(BUILD)/fuzz-runs: $(call object,tests/fuzz/driver.cpp tests/fuzz/grammar.cpp tests/fuzz/subject.cpp $(of_runs)) $(of_interface) $(call of_tool,options generate) $(of_library)
$(BUILD)/fuzz $(BUILD)/fuzz-runs:
	@echo '  link $@'
	$(Q)$(CXX) $(flags) $^ $(libs) -o $@

# ---- kernels as fibers ----------------------------------------------------------------------------------------------
# The files of the CUDA half for the tests, which run them on the CPU; as nvcc does, the build includes CUDA's header first.
# g++ calls tests/emulator/memory.cpp before every access to memory that a kernel does; no sanitizer is linked for it, and
# where one is, it has these calls for itself. nvcc's `#pragma unroll` is not for g++.
watched := $(filter release debug,$(CONFIG))
of_fibers := -Wno-unknown-pragmas -f$(if $(watched),,no-)sanitize=thread
$(BUILD)/fibers/%.o: % $(BUILD)/flags | needs
	@mkdir -p $(@D)
	@echo '  c++  $< (fibers)'
	$(Q)$(CXX) $(flags) $(of_fibers) $(if $(filter $<,$(row_ops)),-include $(BUILD)/fibers/row_ops.h,-x c++ -include tests/emulator/cuda.h) -MMD -MP -c $< -o $@
$(BUILD)/fibers/row_ops.h.gch: tests/emulator/cuda.h engine/ops/launch.h $(BUILD)/flags | needs
	@mkdir -p $(@D)
	@echo '  c++  engine/ops/launch.h (fibers)'
	@printf '#include "%s"\n' tests/emulator/cuda.h engine/ops/launch.h > $(@:.gch=)
	$(Q)$(CXX) $(flags) $(of_fibers) -MMD -MP -x c++-header $(@:.gch=) -o $@
$(row_ops:%=$(BUILD)/fibers/%.o): $(BUILD)/fibers/row_ops.h.gch
-include $(kernels:%=$(BUILD)/fibers/%.d) $(BUILD)/fibers/row_ops.h.d
$(BUILD)/obj/tests/emulator/%.o: flags += $(if $(watched),-DWATCHES_MEMORY,-fno-sanitize=thread)

# ---- PTX as fibers --------------------------------------------------------------------------------------------------
# What nvcc makes of every kernel, translated to C++, under the real host code of the CUDA library and stand-ins for CUDA's
# runtime and cuBLASLt. One library plays both, so a captured step has their work in its order. For one architecture.
ifneq ($(one_arch),)
ptx          := $(BUILDS)/ptx
ptx_kernels  := $(filter-out $(WITHOUT:%=$(ptx)/engine/ops/%.o),$(patsubst $(CUDA_BUILD)/%.o,$(ptx)/%.o,$(cuda_objects) $(oracle)))
ptx_emulator := $(patsubst %,$(ptx)/tests/%.o,$(addprefix emulator/,run meet fiber memory fragments) ptx/kernels)
ptx_stand_in := $(ptx)/tests/ptx/runtime.o $(ptx)/tests/ptx/cublas.o
ptx-test: $(ptx)/libmasquerade_cuda.so $(BUILD)/tests
	@MASQUERADE_CUDA=$(CURDIR)/$< MASQUERADE_CUBLAS=$(CURDIR)/$< $(BUILD)/tests --test-case='$(or $(ONLY),gpu: *)'
$(ptx)/libmasquerade_cuda.so: $(cuda_objects) $(oracle) $(ptx_kernels) $(ptx_emulator) $(ptx_stand_in) tests/ptx/exports.map
	@echo '  link $@'
	$(Q)$(CXX) -shared $(filter %.o,$^) -o $@ $(LDFLAGS) -Wl,-Bsymbolic,-z,defs,--version-script=tests/ptx/exports.map $(FMT_LIB) -ldl
$(ptx_kernels): $(ptx)/%.o: $(CUDA_BUILD)/%.o tests/ptx/translate.py tests/ptx/ptx.h tests/ptx/kernels.h tests/emulator/block.h
	@mkdir -p $(@D)
	@echo '  c++  $(<:.o=.ptx)'
	$(Q)python3 tests/ptx/translate.py $(<:.o=.ptx) $(@:.o=.cpp)
	$(Q)$(CXX) -std=c++17 -I. -fPIC -O1 -g1 -march=$(MARCH) -ffp-contract=off -fno-math-errno -fsanitize=thread \
	    -include tests/emulator/cuda.h -c $(@:.o=.cpp) -o $@
$(ptx_emulator): $(ptx)/%.o: %.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo '  c++  $< (for a library)'
	$(Q)$(CXX) $(flags) -fPIC -DWATCHES_MEMORY -MMD -MP -c $< -o $@
$(ptx_stand_in): $(ptx)/%.o: %.cpp $(CUDA_BUILD)/flags
	@mkdir -p $(@D)
	@echo '  nvcc $<'
	$(Q)$(NVCC) -x c++ -std=c++17 -I. -O2 -Xcompiler -fPIC,-Wall,-Wextra -MMD -MP -c $< -o $@
-include $(ptx_emulator:.o=.d) $(ptx_stand_in:.o=.d)
else
ptx-test: ; @$(MAKE) CUDA_ARCHS=90 CUDA_BUILD=$(BUILDS)/cuda-ptx $@
endif

# A lab: what holds of docs/labs/NN/lab.cpp, or of another FILE in its place. The check is compiled once, with -O1 if the
# student's file has -O0 (also in tools/make/grade.sh): its own formulas take most of the time.
labs := $(patsubst docs/labs/%/check.cpp,%,$(wildcard docs/labs/*/check.cpp))
override LAB := $(or $(filter $(LAB) 0$(LAB),$(labs)),$(LAB))
lab_flags := $(shell cat docs/labs/$(LAB)/flags 2>/dev/null || echo -O0)
lab: $(if $(filter $(LAB),$(labs)),$(BUILD)/obj/docs/labs/$(LAB)/check.o $(if $(filter library,$(lab_flags)),$(library)))
	@$(if $(LAB),,echo 'make lab: which one? make lab LAB=02' >&2; exit 2)
	@$(if $(filter $(LAB),$(labs)),,echo 'error: there is no lab $(LAB); there are $(labs)' >&2; exit 2)
	$(Q)CXX='$(CXX)' LAB_LIBRARY='$(library)' LAB_ASAN='$(ASAN)' tools/make/lab.sh $(LAB) $< $(call quoted,$(patsubst ~/%,$(HOME)/%,$(or $(FILE),docs/labs/$(LAB)/lab.cpp))) $(BUILD)/lab-$(LAB)
	@LAB_NAME=$(call quoted,$(STUDENT)) ASAN_OPTIONS="detect_leaks=0:$$ASAN_OPTIONS" $(BUILD)/lab-$(LAB)
-include $(wildcard $(BUILD)/obj/docs/labs/*/check.d)
$(BUILD)/obj/docs/labs/%/check.o: flags += $(patsubst -O0,-O1,$(filter-out library,$(lab_flags))) -D_GLIBCXX_ASSERTIONS

student: ; @tools/make/student.sh "$(DIR)"
book: ; @SOLUTIONS='$(SOLUTIONS)' tools/make/book.sh $(BUILDS)/book
book-pdf: ; @SOLUTIONS='$(SOLUTIONS)' tools/make/book.sh $(BUILDS)/book pdf
slides: ; @python3 -B tools/make/slides.py build $(BUILDS)/slides docs/slides/*.md
book-publish: book
	@$(if $(TO),,echo 'make book-publish: where to? make book-publish TO=FOLDER, or TO=HOST:FOLDER' >&2; exit 2)
	@rsync -a --delete $(BUILDS)/book/site/ '$(TO)/' && echo 'published the book: $(TO)'

# For editors and clangd: the command that compiles each file.
compile_commands.json:
	@for file in $(sources) $(tests) $(wildcard tools/*.cpp tools/*/*.cpp); do \
	    printf '{"directory": "%s", "file": "%s", "command": "%s"},\n' "$(CURDIR)" $$file '$(CXX) $(flags) -c '$$file; done | \
	    sed '1s/^/[/; $$s/,$$/]/' > $@

# ---- packages, corpora, installing ----------------------------------------------------------------------------------
deps: ; @tools/make/deps.sh $(MISSING) $(MISSING_TESTS) $(WANTED)
deps-book: ; @tools/make/deps.sh mkdocs mkdocs-material katex chromium-headless-shell poppler-utils rsync
deps-mpi: ; @tools/make/deps.sh $(if $(filter 1,$(MPI_WORKS)),,libopenmpi-dev openmpi-bin)

ifeq ($(if $(FORCE),,$(wildcard corpus/SOURCE.json)),)
data: $(BUILD)/corpus ; @FORCE=$(FORCE) data/default_corpora.sh $<
else
data: ; @echo 'data: corpus/ is there (make data FORCE=1 makes it anew)'
endif

root    := $(DESTDIR)$(PREFIX)
install: $(library) $(shared) $(if $(cuda_here),$(cuda_library)) $(mpi_here)
	@install -d "$(root)/lib/pkgconfig"
	@install -m 644 $(filter-out $(BUILD)/libmasquerade.so,$^) "$(root)/lib"
	@ln -sfn $(soname) "$(root)/lib/libmasquerade.so"
	@install -D -m 644 library/masquerade.h "$(root)/include/masquerade.h"
	@install -D -m 644 python/masquerade.py "$(root)/lib/python3/dist-packages/masquerade.py"
	@find input engine tokenizer data models -name '*.h' -exec install -D -m 644 {} "$(root)/include/masquerade/{}" \;
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(version)|; s|@MARCH@|$(MARCH)|; s|@REQUIRES@|$(if $(FMT_LIB),fmt)|' tools/make/masquerade.pc.in \
	    > "$(root)/lib/pkgconfig/masquerade.pc"
	@echo 'installed masquerade $(version) into $(root)'

# The programs become commands of one program: masquerade train, masquerade generate and so on.
install-programs: $(first:%=$(BUILD)/%) $(BUILD)/corpus
	@install -d "$(root)/bin" "$(root)/lib/masquerade"
	@install $^ "$(root)/lib/masquerade"
	@install -d "$(root)/share/masquerade"
	@install data/*.sh "$(root)/share/masquerade"
	@install tools/make/masquerade.sh "$(root)/bin/masquerade"
	@echo 'installed masquerade and its commands $(notdir $^) into $(root)'
staged := $(BUILD)/deb
deb:
	@rm -rf $(staged)
	@$(MAKE) install install-programs DESTDIR=$(staged) PREFIX=/usr
	@tools/make/deb.sh $(staged) $(version) $(MARCH) $(BUILD)/train
endif
