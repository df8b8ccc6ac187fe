// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/field_writer.h"

#include <algorithm>

namespace resmgr {

void FieldWriter::Grow(size_t size) {
  // Mostly enough for the whole message. Not more for longer texts: they may be there already, and
  // each writer would fill as much with zeros again.
  constexpr size_t kMore = 128;
  out_.resize(size_ + size + kMore);
}

// Moves the message to make room for a length of several bytes.
void FieldWriter::EndLong(size_t begin) {
  const size_t size = size_ - begin;
  char length[kMaxVarint];
  const auto more = static_cast<size_t>(AddVarint(size, length) - length - 1);
  Room(more);
  char* const content = out_.data() + begin;
  std::copy_backward(content, content + size, content + size + more);
  std::copy_n(length, more + 1, content - 1);
  size_ += more;
}

}  // namespace resmgr
