# Every third-party library, each with why it is here. scripts/install-deps installs them (Debian 12 names).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)                                          # error and log texts; std::format is not in GCC 12
find_package(nlohmann_json REQUIRED)                                # configs, manifests, request bodies
find_package(yaml-cpp REQUIRED)                                     # --config files
find_package(CLI11 REQUIRED)                                        # flags, --help
find_package(OpenSSL REQUIRED)                                      # SHA-256 of packages and checkpoints; TLS later
find_package(CURL REQUIRED)                                         # HTTP client
find_package(Boost 1.81 REQUIRED)                                   # Beast + Asio: HTTP server (headers only)
find_package(LibArchive REQUIRED)                                   # model.tar.gz
find_package(PkgConfig REQUIRED)
pkg_check_modules(hdf5 REQUIRED IMPORTED_TARGET hdf5-serial)         # shards of pre-training data
add_library(hdf5::hdf5 ALIAS PkgConfig::hdf5)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)    # Unicode: categories, NFD, case (tokenizers)
find_path(LLVM_INCLUDE_DIRS llvm/IR/IRBuilder.h PATHS /usr/lib/llvm-19/include NO_DEFAULT_PATH REQUIRED)  # machine code of fused regions:
find_library(LLVM_LIBRARY LLVM-19 PATHS /usr/lib/llvm-19/lib NO_DEFAULT_PATH REQUIRED)                # one lowering for every ISA; in the
find_library(LLD_ELF_LIBRARY lldELF PATHS /usr/lib/llvm-19/lib NO_DEFAULT_PATH REQUIRED)              # module codegen alone, and lld to link
find_library(LLD_COMMON_LIBRARY lldCommon PATHS /usr/lib/llvm-19/lib NO_DEFAULT_PATH REQUIRED)        # its objects in process
if(MUSTER_TESTS)
  find_package(GTest REQUIRED)                                      # tests
  include(GoogleTest)
endif()
if(MUSTER_BENCH)
  find_library(DNNL_LIBRARY dnnl REQUIRED)                          # rival of our matmuls in bench/; its own CMake package wants OpenCL
endif()
