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

// Decompresses gzip (RFC 1952) in steps, because a few bytes may become many megabytes. Several
// members yield their contents in order, as the format says. Loop's thread only.
class Inflater {
 public:
  // `input` outlives this object. The output begins after `room` bytes, which are left for the
  // caller to write, and has at most `limit` bytes.
  Inflater(std::string_view input, size_t room, size_t limit);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Continues for at most `most` bytes of input or output. True: the output is complete.
  // kInvalidArgument: not valid gzip data. kResourceExhausted: more than the limit.
  StatusOr<bool> Step(size_t most);

  // `room` unset bytes, followed by the output so far.
  h2::Slice output() const { return output_.slice(); }
  // Bytes of memory that this object takes.
  size_t memory() const { return kZlibMemory + output_.capacity(); }

 private:
  // Bytes of zlib's window and tables.
  static constexpr size_t kZlibMemory = size_t{48} * 1024;

  std::string_view input_;  // the unread rest
  const size_t most_;       // room and output together
  std::unique_ptr<z_stream_s> stream_;
  bool started_ = false;
  h2::GrowingBlock output_;
};

}  // namespace resmgr
