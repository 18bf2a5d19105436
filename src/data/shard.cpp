#include "data/shard.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "data/hdf5_file.h"
#include "storage/file.h"

namespace muster::data {
namespace {

/// A table as rows of one width.
struct Table {
  int64_t rows = 0, width = 1;
  std::vector<int32_t> values;
  [[nodiscard]] std::span<const int32_t> row(int64_t r) const {
    return std::span(values).subspan(static_cast<size_t>(r * width), static_cast<size_t>(width));
  }
};

Table read_table(const Hdf5File& file, const std::string& name, size_t rank) {
  const std::vector<int64_t> shape = file.shape(name);
  if (shape.size() != rank && !(rank == 1 && shape.size() == 2 && shape[1] == 1))
    throw Error(ErrorKind::corrupt, "{} has {} dimensions, not {}", name, shape.size(), rank);
  return {shape[0], shape.size() == 2 ? shape[1] : 1, file.read(name)};
}

/// Number of leading ones of a mask that is ones and then zeros; -1 for any other.
int64_t ones_of(std::span<const int32_t> mask) {
  int64_t n = 0;
  while (n < static_cast<int64_t>(mask.size()) && mask[static_cast<size_t>(n)] == 1) ++n;
  for (size_t i = static_cast<size_t>(n); i < mask.size(); ++i)
    if (mask[i] != 0) return -1;
  return n;
}

class Reader {
 public:
  Reader(const std::string& path, int64_t vocab_size) : path_(path), vocab_size_(vocab_size), file_(path) {}

  Shard run() {
    try {
      return read();
    } catch (const Error& e) {
      const std::string what = e.what();
      throw Error(e.kind(), "{}", what.starts_with(path_) ? what : path_ + ": " + what);
    }
  }

 private:
  Shard read() {
    const Table ids = read_table(file_, "input_ids", 2), mask = read_table(file_, "input_mask", 2),
                segments = read_table(file_, "segment_ids", 2), positions = read_table(file_, "masked_lm_positions", 2),
                labels = read_table(file_, "masked_lm_ids", 2);
    Table next;
    if (file_.has("next_sentence_labels")) next = read_table(file_, "next_sentence_labels", 1);
    for (const auto& [name, table] : {std::pair{"input_mask", &mask}, {"segment_ids", &segments}})
      if (table->rows != ids.rows || table->width != ids.width)
        fail("{} is [{}, {}], input_ids [{}, {}]", name, table->rows, table->width, ids.rows, ids.width);
    if (positions.rows != ids.rows || labels.rows != ids.rows || positions.width != labels.width)
      fail("masked_lm_positions is [{}, {}], masked_lm_ids [{}, {}], input_ids has {} rows", positions.rows, positions.width, labels.rows,
           labels.width, ids.rows);
    if (!next.values.empty() && next.rows != ids.rows) fail("next_sentence_labels has {} rows, input_ids {}", next.rows, ids.rows);
    Shard shard;
    shard.path = path_, shard.max_tokens = ids.width, shard.max_masks = positions.width;
    for (int64_t r = 0; r < ids.rows; ++r) {
      const int64_t length = ones_of(mask.row(r));
      if (length < 1) fail("row {}: input_mask is not ones and then zeros", r);
      const auto row_ids = ids.row(r).first(static_cast<size_t>(length)), row_segments = segments.row(r).first(static_cast<size_t>(length));
      check_ids(row_ids, "input_ids", r);
      for (const int32_t s : row_segments)
        if (s != 0 && s != 1) fail("row {}: segment_ids has a {}", r, s);
      // The first 0 ends the list: position 0 is [CLS], which is never masked.
      size_t masks = 0;
      const auto row_positions = positions.row(r), row_labels = labels.row(r);
      while (masks < row_positions.size() && row_positions[masks] != 0) {
        if (row_positions[masks] < 0 || row_positions[masks] >= length || (masks > 0 && row_positions[masks] <= row_positions[masks - 1]))
          fail("row {}: masked_lm_positions has {} at place {}: not rising inside the {} tokens", r, row_positions[masks], masks, length);
        ++masks;
      }
      check_ids(row_labels.first(masks), "masked_lm_ids", r);
      shard.append(row_ids, row_segments, row_positions.first(masks), row_labels.first(masks));
      if (next.values.empty()) continue;
      const int32_t label = next.values[static_cast<size_t>(r)];
      if (label != 0 && label != 1) fail("row {}: next_sentence_labels has a {}", r, label);
      shard.next_labels.push_back(label);
    }
    return shard;
  }

  void check_ids(std::span<const int32_t> ids, const char* table, int64_t row) const {
    for (const int32_t id : ids)
      if (id < 0 || (vocab_size_ > 0 && id >= vocab_size_)) fail("row {}: {} has {}, the vocabulary {} words", row, table, id, vocab_size_);
  }
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorKind::corrupt, "{}: {}", path_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string path_;
  int64_t vocab_size_;
  Hdf5File file_;
};

/// Rows padded with zeros to `width`.
class Padded {
 public:
  Padded(int64_t rows, int64_t width) : width_(width), values_(static_cast<size_t>(rows * width)) {}
  void put(int64_t row, std::span<const int32_t> values) { std::copy(values.begin(), values.end(), values_.begin() + row * width_); }
  void fill(int64_t row, int64_t n, int32_t value) { std::fill_n(values_.begin() + row * width_, n, value); }
  [[nodiscard]] std::span<const int32_t> values() const { return values_; }

 private:
  int64_t width_;
  std::vector<int32_t> values_;
};

}  // namespace

void Shard::append(std::span<const int32_t> row_ids, std::span<const int32_t> row_segments, std::span<const int32_t> positions,
                   std::span<const int32_t> labels) {
  ids.insert(ids.end(), row_ids.begin(), row_ids.end());
  segments.insert(segments.end(), row_segments.begin(), row_segments.end());
  starts.push_back(static_cast<int64_t>(ids.size()));
  mask_positions.insert(mask_positions.end(), positions.begin(), positions.end());
  mask_labels.insert(mask_labels.end(), labels.begin(), labels.end());
  mask_starts.push_back(static_cast<int64_t>(mask_positions.size()));
}

int64_t shard_rows(const std::string& path) {
  const Hdf5File file(path);
  return file.shape("input_ids")[0];
}

bool has_next_labels(const std::string& path) { return Hdf5File(path).has("next_sentence_labels"); }

Shard read_shard(const std::string& path, int64_t vocab_size) { return Reader(path, vocab_size).run(); }

void write_shard(const Shard& shard) {
  const int64_t rows = shard.rows(), width = shard.max_tokens, masks = std::max<int64_t>(1, shard.max_masks);
  Padded ids(rows, width), mask(rows, width), segments(rows, width), positions(rows, masks), labels(rows, masks);
  for (int64_t r = 0; r < rows; ++r) {
    if (shard.length(r) > width || static_cast<int64_t>(shard.positions_of(r).size()) > masks)
      throw Error(ErrorKind::invalid_argument, "{}: row {} has {} tokens and {} masks; the shard holds {} and {}", shard.path, r,
                  shard.length(r), shard.positions_of(r).size(), width, masks);
    ids.put(r, shard.ids_of(r)), segments.put(r, shard.segments_of(r)), mask.fill(r, shard.length(r), 1);
    positions.put(r, shard.positions_of(r)), labels.put(r, shard.labels_of(r));
  }
  std::vector<Hdf5Table> tables{{"input_ids", rows, width, false, ids.values()},
                                {"input_mask", rows, width, true, mask.values()},
                                {"segment_ids", rows, width, true, segments.values()},
                                {"masked_lm_positions", rows, masks, false, positions.values()},
                                {"masked_lm_ids", rows, masks, false, labels.values()}};
  if (!shard.next_labels.empty() || rows == 0) tables.push_back({"next_sentence_labels", rows, 0, true, shard.next_labels});
  write_hdf5(shard.path, tables);
}

std::vector<std::string> list_shards(const std::string& path, const std::string& split) {
  if (storage::is_file(path)) return {path};
  if (!storage::is_folder(path)) throw Error(ErrorKind::not_found, "{}: no such file or folder of shards", path);
  std::vector<std::string> all, named;
  bool any_split = false;
  for (const storage::TreeEntry& entry : storage::list_tree(path)) {
    const std::filesystem::path name(entry.name);
    const std::string file = name.filename().string();
    if (entry.kind != storage::TreeEntry::Kind::file || file.starts_with(".") || (name.extension() != ".hdf5" && name.extension() != ".h5"))
      continue;
    const bool training = file.find("training") != std::string::npos, test = file.find("test") != std::string::npos;
    any_split = any_split || training || test;
    all.push_back(path + "/" + entry.name);
    if ((split == "train" && training) || (split == "test" && test && !training)) named.push_back(all.back());
  }
  if (!any_split && split == "train") named = all;
  if (named.empty())
    throw Error(ErrorKind::not_found, "{}: no shards of the {} split (*_{}_*.hdf5); `muster data prepare` makes them", path, split,
                split == "train" ? "training" : split);
  return named;
}

}  // namespace muster::data
