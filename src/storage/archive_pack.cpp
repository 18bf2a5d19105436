// Packing a folder into a gzip-compressed tar whose bytes depend on names and contents only.
#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <memory>

#include "storage/archive.h"
#include "storage/descriptor.h"
#include "storage/file.h"

namespace muster::storage {
namespace {

struct Writer {
  AtomicFile output;
  std::exception_ptr error;  // C code lies between the callback and us: an exception must not cross it
};

la_ssize_t write_block(struct archive* /*archive*/, void* context, const void* data, size_t size) {
  auto* writer = static_cast<Writer*>(context);
  try {
    writer->output.write(std::span(static_cast<const std::byte*>(data), size));
    return static_cast<la_ssize_t>(size);
  } catch (...) {
    writer->error = std::current_exception();
    return -1;
  }
}

/// Whether `path` (that need not exist) lies below `folder`.
bool lies_inside(const std::string& path, const std::string& folder) {
  std::error_code error;
  const auto inner = std::filesystem::weakly_canonical(parent_of(path), error), outer = std::filesystem::weakly_canonical(folder, error);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

class Packer {
 public:
  Packer(Writer& writer, std::string folder, const PackOptions& options)
      : writer_(writer),
        folder_(std::move(folder)),
        between_blocks_(options.between_blocks),
        archive_(archive_write_new(), archive_write_free),
        buffer_(1 << 18) {
    MUSTER_ASSERT(archive_ != nullptr);
    check(archive_write_add_filter_gzip(archive_.get()));
    check(archive_write_set_filter_option(archive_.get(), "gzip", "timestamp", nullptr));  // no time in the gzip header
    check(archive_write_set_filter_option(archive_.get(), "gzip", "compression-level", std::to_string(options.gzip_level).c_str()));
    // GNU tar: names are bytes of any length whatever the locale, sizes have no limit, and every tar reads it.
    check(archive_write_set_format_gnutar(archive_.get()));
    // Nothing after the gzip trailer: strict readers (Go) take padding for a damaged second member.
    check(archive_write_set_bytes_in_last_block(archive_.get(), 1));
    check(archive_write_open(archive_.get(), &writer_, nullptr, write_block, nullptr));
  }

  void add(const TreeEntry& item) {
    const std::string path = folder_ + "/" + item.name;
    if (item.kind == TreeEntry::Kind::other)
      throw Error(ErrorKind::invalid_argument, "cannot pack {}: it is a link or a device; replace it by a plain file", path);
    const std::unique_ptr<struct archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname(entry.get(), item.name.c_str());
    archive_entry_set_mtime(entry.get(), 0, 0);
    if (item.kind == TreeEntry::Kind::folder) {
      archive_entry_set_filetype(entry.get(), AE_IFDIR);
      archive_entry_set_perm(entry.get(), 0755);
      check(archive_write_header(archive_.get(), entry.get()));
      return;
    }
    const Descriptor fd = open_for_reading(path);
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) throw_read_error(path, errno);
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), (status.st_mode & S_IXUSR) != 0 ? 0755 : 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(item.bytes));
    check(archive_write_header(archive_.get(), entry.get()));
    uint64_t packed = 0;
    for (;;) {
      const ssize_t n = ::read(fd.get(), buffer_.data(), buffer_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw_read_error(path, errno);
      packed += static_cast<uint64_t>(n);
      if (packed > item.bytes || (n == 0 && packed < item.bytes))
        throw Error(ErrorKind::io, "cannot pack {}: it changed meanwhile; run again", path);
      if (n == 0) return;
      if (between_blocks_) between_blocks_();
      if (archive_write_data(archive_.get(), buffer_.data(), static_cast<size_t>(n)) != n) check(ARCHIVE_FATAL);
    }
  }

  void close() { check(archive_write_close(archive_.get())); }

 private:
  void check(int result) {
    if (writer_.error) std::rethrow_exception(writer_.error);
    if (result != ARCHIVE_OK) throw Error(ErrorKind::io, "cannot pack {}: {}", folder_, archive_error_string(archive_.get()));
  }

  Writer& writer_;
  std::string folder_;
  std::function<void()> between_blocks_;
  std::unique_ptr<struct archive, decltype(&archive_write_free)> archive_;
  std::vector<char> buffer_;
};

}  // namespace

void pack_tar_gz(const std::string& folder, const std::string& output_path, const PackOptions& options) {
  if (options.gzip_level < 1 || options.gzip_level > 9)
    throw Error(ErrorKind::invalid_argument, "gzip level {} is not between 1 and 9", options.gzip_level);
  const std::vector<TreeEntry> entries = list_tree(folder);
  if (entries.empty()) throw Error(ErrorKind::invalid_argument, "cannot pack {}: the folder is empty", folder);
  if (lies_inside(output_path, folder))
    throw Error(ErrorKind::invalid_argument, "cannot write {} into the folder {} that it packs; choose another place", output_path, folder);
  Writer writer{AtomicFile(output_path, "archive"), nullptr};
  Packer packer(writer, folder, options);
  for (const TreeEntry& entry : entries) packer.add(entry);
  packer.close();
  writer.output.commit();
}

}  // namespace muster::storage
