#include "data/hdf5_file.h"

#include <hdf5.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "core/error.h"
#include "storage/file.h"

namespace muster::data {
namespace {

std::recursive_mutex& library() {
  static std::recursive_mutex mutex;
  return mutex;
}
using Lock = std::lock_guard<std::recursive_mutex>;

/// An id of the library with the function that closes it.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  operator hid_t() const { return id_; }  // NOLINT: it stands for the id

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// The library prints its own stack of errors unless told not to.
void be_quiet() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

Error not_opened(const std::string& path, const std::string& table, bool is_there) {
  if (!is_there) return {ErrorKind::corrupt, "{}: has no table {}", path, table};
  return {ErrorKind::unsupported, "{}: table {} is damaged, or of a file format newer than HDF5 {}; write the file with libver='v110'",
          path, table, library_version()};
}

/// Name of a filter that the table needs and this library has not; empty: all are there.
std::string missing_filter(hid_t set) {
  const Id create(H5Dget_create_plist(set), H5Pclose);
  const int count = H5Pget_nfilters(create);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t filter = H5Pget_filter2(create, static_cast<unsigned>(i), &flags, &values, nullptr, sizeof(name), name, &config);
    if (filter >= 0 && H5Zfilter_avail(filter) <= 0) return fmt::format("{} ({})", name, filter);
  }
  return {};
}

constexpr int64_t kMaxElements = int64_t{1} << 31;

}  // namespace

struct Hdf5File::State {
  std::string path;
  hid_t file = -1;
};

Hdf5File::Hdf5File(const std::string& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  if (!storage::is_file(path)) throw Error(ErrorKind::not_found, "{}: no such file", path);
  const Lock lock(library());
  be_quiet();
  state_->file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (state_->file < 0) throw Error(ErrorKind::corrupt, "{}: not an HDF5 file, or cut off", path);
}

Hdf5File::~Hdf5File() {
  const Lock lock(library());
  if (state_->file >= 0) H5Fclose(state_->file);
}

bool Hdf5File::has(const std::string& table) const {
  const Lock lock(library());
  return H5Lexists(state_->file, table.c_str(), H5P_DEFAULT) > 0;
}

std::vector<int64_t> Hdf5File::shape(const std::string& table) const {
  const Lock lock(library());
  const Id set(H5Dopen2(state_->file, table.c_str(), H5P_DEFAULT), H5Dclose);
  if (set < 0) throw not_opened(state_->path, table, has(table));
  const Id type(H5Dget_type(set), H5Tclose), space(H5Dget_space(set), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space);
  const H5T_class_t kind = H5Tget_class(type);  // a NumPy bool is an enumeration
  if ((kind != H5T_INTEGER && kind != H5T_ENUM) || H5Tget_size(type) > 8 || rank < 1 || rank > 2)
    throw Error(ErrorKind::corrupt, "{}: table {} is not one of integers with one or two dimensions", state_->path, table);
  hsize_t sizes[2] = {0, 0};
  H5Sget_simple_extent_dims(space, sizes, nullptr);
  const int64_t elements = static_cast<int64_t>(std::min<hsize_t>(sizes[0], kMaxElements)) *
                           (rank == 2 ? static_cast<int64_t>(std::min<hsize_t>(sizes[1], 1 << 20)) : 1);
  if (sizes[0] > kMaxElements || elements > kMaxElements)
    throw Error(ErrorKind::too_large, "{}: table {} has more than {} values; cut it into several files", state_->path, table, kMaxElements);
  std::vector<int64_t> shape{static_cast<int64_t>(sizes[0])};
  if (rank == 2) shape.push_back(static_cast<int64_t>(sizes[1]));
  return shape;
}

std::vector<int32_t> Hdf5File::read(const std::string& table) const {
  const Lock lock(library());
  int64_t elements = 1;
  for (const int64_t size : shape(table)) elements *= size;
  const Id set(H5Dopen2(state_->file, table.c_str(), H5P_DEFAULT), H5Dclose), type(H5Dget_type(set), H5Tclose);
  if (const std::string filter = missing_filter(set); !filter.empty())
    throw Error(ErrorKind::unsupported, "{}: table {} is compressed by {}, which this HDF5 library has not; use gzip", state_->path, table,
                filter);
  const auto cut_off = [&] {
    return Error(ErrorKind::corrupt, "{}: table {} cannot be read: the file is cut off or damaged", state_->path, table);
  };
  std::vector<int32_t> values(static_cast<size_t>(elements));
  const bool fits = H5Tget_size(type) < 4 || (H5Tget_size(type) == 4 && H5Tget_sign(type) == H5T_SGN_2);
  if (fits) {
    if (elements > 0 && H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) throw cut_off();
    return values;
  }
  std::vector<int64_t> wide(values.size());
  if (elements > 0 && H5Dread(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, wide.data()) < 0) throw cut_off();
  for (size_t i = 0; i < wide.size(); ++i) {
    if (wide[i] < std::numeric_limits<int32_t>::min() || wide[i] > std::numeric_limits<int32_t>::max())
      throw Error(ErrorKind::corrupt, "{}: table {} has the value {}, which is no 32-bit number", state_->path, table, wide[i]);
    values[i] = static_cast<int32_t>(wide[i]);
  }
  return values;
}

void write_hdf5(const std::string& path, const std::vector<Hdf5Table>& tables) {
  const auto failed = [&](const std::string& what) { return Error(ErrorKind::internal, "{}: HDF5 does not make {}", path, what); };
  std::string image;
  {
    const Lock lock(library());
    be_quiet();
    // In memory first: the file then appears whole, by the same way as every other.
    const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fapl_core(access, size_t{4} << 20, 0);
    const Id file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose);
    if (file < 0) throw failed("the file");
    for (const Hdf5Table& t : tables) {
      const hsize_t sizes[2] = {static_cast<hsize_t>(t.rows), static_cast<hsize_t>(t.width)};
      const int rank = t.width == 0 ? 1 : 2;
      const Id space(H5Screate_simple(rank, sizes, nullptr), H5Sclose), create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      H5Pset_obj_track_times(create, 0);  // no clock in the file
      if (t.rows > 0) {
        const hsize_t chunk[2] = {std::min<hsize_t>(sizes[0], 1024), sizes[1]};
        H5Pset_chunk(create, rank, chunk);
        H5Pset_deflate(create, 4);
      }
      const Id set(H5Dcreate2(file, t.name.c_str(), t.narrow ? H5T_STD_I8LE : H5T_STD_I32LE, space, H5P_DEFAULT, create, H5P_DEFAULT),
                   H5Dclose);
      if (set < 0 || (t.rows > 0 && H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, t.values.data()) < 0))
        throw failed("table " + t.name);
    }
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    const ssize_t size = H5Fget_file_image(file, nullptr, 0);
    if (size <= 0) throw failed("an image");
    image.resize(static_cast<size_t>(size));
    H5Fget_file_image(file, image.data(), image.size());
  }
  storage::write_file_atomic(path, image, "shard");
}

}  // namespace muster::data
