// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/growing_block.h"

struct z_stream_s;

namespace resmgr {

// Decompresses gzip (RFC 1952) in steps, because a few bytes may become many megabytes. Data of
// several members is all of them in order, as the format says. Loop's thread only.
class Inflater {
 public:
  // `input` outlives it. The output begins after `room` bytes that are left to be written later,
  // and has `limit` bytes at most.
  Inflater(std::string_view input, size_t room, size_t limit);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Goes on for at most `most` bytes of input or output. True: all is there. InvalidArgument: no
  // valid gzip data. ResourceExhausted: more than the limit.
  StatusOr<bool> Step(size_t most);

  // The room, then what there is of the output.
  h2::Slice output() const { return output_.slice(); }
  // Bytes that this takes.
  size_t memory() const { return kZlibMemory + output_.capacity(); }

 private:
  // zlib's window and tables.
  static constexpr size_t kZlibMemory = size_t{48} * 1024;

  std::string_view input_;  // what is left of it
  const size_t most_;       // of the output with its room
  std::unique_ptr<z_stream_s> stream_;
  bool started_ = false;
  h2::GrowingBlock output_;
};

}  // namespace resmgr
