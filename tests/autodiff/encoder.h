// A whole small encoder with a classifier and its loss, built op by op: the program that golden gradients of PyTorch are for.
#pragma once
#include <string>
#include <vector>

#include "graph/builder.h"

namespace muster::autodiff::testing {

struct EncoderSizes {
  int64_t vocabulary = 11, positions = 6, hidden = 8, heads = 2, intermediate = 12, layers = 2, classes = 3;
};

/// Post-norm BERT: embeddings, `layers` blocks, tanh pooler on the first token of each sequence, classifier, cross entropy with label
/// smoothing 0.1. Parameters carry short names ("0.qkv.weight"); inputs: ids, positions i32 [T], cu_seqlens i32 [B+1], firsts and labels
/// i32 [B]. Returns the loss, the sum over the sequences. `dropout`: of hidden states and attention probabilities.
graph::Value build_encoder(graph::Graph& graph, const EncoderSizes& sizes, double dropout);

}  // namespace muster::autodiff::testing
