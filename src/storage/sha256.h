// SHA-256 (FIPS 180-4), streaming. Hashes identify the files of packages and downloads.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace muster::storage {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  /// 64 lower-case hexadecimal digits. Ends the computation: nothing may be added afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);
/// Reads the file piece by piece. Throws Error(not_found) or Error(io).
std::string sha256_file(const std::string& path);

}  // namespace muster::storage
