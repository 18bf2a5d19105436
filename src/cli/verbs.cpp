#include "cli/verbs.h"

namespace muster::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table{
      {"tokenizer-train", "learn a vocabulary from text", declare_tokenizer_train},
      {"data-prepare", "make shards of pre-training data from text", declare_data_prepare},
      {"data-inspect", "count and check shards of pre-training data", declare_data_inspect},
      {"train", "fine-tune a model folder on labelled texts", declare_train},
      {"top", "watch a training run", declare_top},
      {"eval", "score a fine-tuned model on a labelled split", declare_eval},
      {"package", "pack a model folder into model.tar.gz", declare_package},
      {"serve", "answer predictions over HTTP", declare_serve},
      {"predict", "label texts, by a server or by a model folder", declare_predict},
      {"fill-mask", "show the likeliest words for masked places of texts", declare_fill_mask},
      {"tokenize", "print ids, tokens and offsets of texts", declare_tokenize},
      {"compile", "compile a model's programs ahead of time", declare_compile},
      {"explain", "show where a model's time goes, step by step", declare_explain},
      {"doctor", "say what this machine is and what muster does on it", declare_doctor},
      {"completion", "print the completion script of a shell", declare_completion},
  };
  return table;
}

}  // namespace muster::cli
