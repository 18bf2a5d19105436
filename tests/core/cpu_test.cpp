#include "core/cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.h"

namespace muster {
namespace {

CpuInfo machine(bool avx2, bool avx512, bool amx) {
  CpuInfo info;
  info.brand = "Test CPU";
  info.avx2 = info.fma = avx2, info.avx512 = info.avx512_bf16 = avx512, info.amx_tile = info.amx_bf16 = amx;
  return info;
}

/// Sets MUSTER_ISA for one test and puts the old value back.
class ResolveIsa : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* value = std::getenv("MUSTER_ISA")) before_ = value;
    ::unsetenv("MUSTER_ISA");
  }
  void TearDown() override { before_.empty() ? ::unsetenv("MUSTER_ISA") : ::setenv("MUSTER_ISA", before_.c_str(), 1); }
  static std::string refused(const CpuInfo& info, ErrorKind kind) {
    try {
      resolve_isa(info);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      return e.what();
    }
    return "accepted";
  }

 private:
  std::string before_;
};

TEST_F(ResolveIsa, IsTheBestThereIs) {
  EXPECT_EQ(resolve_isa(machine(true, false, false)), Isa::avx2);
  EXPECT_EQ(resolve_isa(machine(true, true, false)), Isa::avx512);
  EXPECT_EQ(resolve_isa(machine(true, true, true)), Isa::amx);
  EXPECT_EQ(resolve_isa(machine(true, false, true)), Isa::avx2) << "tiles without AVX-512 are of no use";
}

TEST_F(ResolveIsa, NeedsAvx2) {
  EXPECT_EQ(refused(machine(false, false, false), ErrorKind::unsupported),
            "[cpu] Test CPU has no AVX2 with FMA: muster needs an x86-64-v3 processor");
}

TEST_F(ResolveIsa, CanBeLoweredButNotRaised) {
  ::setenv("MUSTER_ISA", "avx2", 1);
  EXPECT_EQ(resolve_isa(machine(true, true, true)), Isa::avx2);
  ::setenv("MUSTER_ISA", "", 1);
  EXPECT_EQ(resolve_isa(machine(true, true, true)), Isa::amx);
  ::setenv("MUSTER_ISA", "amx", 1);
  EXPECT_EQ(refused(machine(true, true, false), ErrorKind::usage), "MUSTER_ISA=amx: this machine has avx512 at most");
  ::setenv("MUSTER_ISA", "sse9", 1);
  EXPECT_EQ(refused(machine(true, true, true), ErrorKind::usage), "MUSTER_ISA=sse9: unknown; have avx2, avx512, amx");
}

TEST(Isa, NamesComeBack) {
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::amx}) EXPECT_EQ(parse_isa(name_of(isa)), isa);
  EXPECT_EQ(parse_isa("AVX2"), std::nullopt);
}

TEST(Cpu, OfThisMachineIsConsistent) {
  const CpuInfo info = detect_cpu();
  EXPECT_GE(info.logical_cores, 1);
  EXPECT_GE(info.l1d_bytes, size_t{8} << 10);
  EXPECT_GE(info.l2_bytes, info.l1d_bytes);
  EXPECT_FALSE(info.vendor.empty());
  if (info.avx512_vnni || info.avx512_bf16) {
    EXPECT_TRUE(info.avx512);
  }
  if (info.amx_bf16 || info.amx_int8) {
    EXPECT_TRUE(info.amx_tile);
  }
}

}  // namespace
}  // namespace muster
