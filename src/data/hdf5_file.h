// Integer tables in HDF5 files: the one place where the HDF5 library is used. What the tables of a pre-training shard are: shard.h.
// The library is not safe for threads: calls go one at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace muster::data {

/// An HDF5 file open for reading. Values of any integer type of up to 64 bits are read as i32.
class Hdf5File {
 public:
  /// Throws Error(not_found|corrupt) naming the file: not there, not HDF5, cut off.
  explicit Hdf5File(const std::string& path);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  [[nodiscard]] bool has(const std::string& table) const;
  /// Sizes of a table of integers with one or two dimensions. Throws Error(corrupt) naming file and table.
  [[nodiscard]] std::vector<int64_t> shape(const std::string& table) const;
  /// The whole table, row after row. Throws Error(corrupt): cut off, or a value that is no i32.
  [[nodiscard]] std::vector<int32_t> read(const std::string& table) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A table to write: [rows] when width is 0, else [rows, width]. `narrow`: stored as int8, else as int32.
struct Hdf5Table {
  std::string name;
  int64_t rows = 0, width = 0;
  bool narrow = false;
  std::span<const int32_t> values;
};
/// Writes a file beside its place and renames it there; gzip, chunked, in the oldest format (as h5py's libver='earliest'). The same
/// tables give the same bytes. Throws Error(io).
void write_hdf5(const std::string& path, const std::vector<Hdf5Table>& tables);

}  // namespace muster::data
