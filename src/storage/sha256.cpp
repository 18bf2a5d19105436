#include "storage/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <vector>

#include "storage/descriptor.h"

namespace muster::storage {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr || EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1)
    throw Error(ErrorKind::unsupported, "[sha256] OpenSSL does not offer SHA-256 here");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) { MUSTER_ASSERT(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1); }

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  MUSTER_ASSERT(EVP_DigestFinal_ex(state_->context, digest.data(), &size) == 1);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text.data(), text.size()))); }

std::string sha256_file(const std::string& path) {
  const Descriptor fd = open_for_reading(path);
  Sha256 hash;
  std::vector<std::byte> buffer(1 << 20);
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_read_error(path, errno);
    if (n == 0) return hash.hex();
    hash.update(std::span(buffer).first(static_cast<size_t>(n)));
  }
}

}  // namespace muster::storage
