// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/wire.h"

#include <algorithm>
#include <array>

namespace resmgr {
namespace {

constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kLengthDelimited = 2;
constexpr uint32_t kStartGroup = 3;
constexpr uint32_t kEndGroup = 4;
constexpr uint32_t kFixed32 = 5;
constexpr size_t kLongestVarint = 10;
// Depth of nested groups, as in protobuf's own parsers.
constexpr size_t kDeepestGroup = 100;

// Moves `place` behind the varint. Returns false if the varint does not end before `end`, or within
// ten bytes.
bool ReadVarint(const char*& place, const char* end, uint64_t& value) {
  // Most varints have one byte.
  if (place != end && static_cast<uint8_t>(*place) < 0x80) {
    value = static_cast<uint8_t>(*place++);
    return true;
  }
  value = 0;
  const char* at = place;
  for (uint32_t shift = 0; shift < 64 && at != end; shift += 7) {
    const auto byte = static_cast<uint8_t>(*at++);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      place = at;
      return true;
    }
  }
  return false;
}

}  // namespace

bool WireReader::Fail() {
  failed_ = true;
  at_ = end_;
  return false;
}

bool WireReader::FailAtEnd() {
  cut_short_ = true;
  return Fail();
}

bool WireReader::TakeVarint(uint64_t& value) {
  if (ReadVarint(at_, end_, value)) return true;
  cut_short_ = left() < kLongestVarint;
  return false;
}

bool WireReader::NextOfAnyKind() {
  return ReadTag() && (wire_type_ == kStartGroup ? SkipGroup() : ReadValue());
}

bool WireReader::ReadTag() {
  uint64_t tag = 0;
  if (!TakeVarint(tag) || tag > UINT32_MAX || tag >> 3 == 0) return Fail();
  field_ = static_cast<uint32_t>(tag >> 3);
  wire_type_ = static_cast<uint32_t>(tag & 7);
  bytes_ = {};
  number_ = 0;
  return true;
}

bool WireReader::ReadValue() {
  size_t size = 0;
  switch (wire_type_) {
    case kVarint:
      return TakeVarint(number_) || Fail();
    case kLengthDelimited: {
      uint64_t length = 0;
      if (!TakeVarint(length)) return Fail();
      if (length > left()) return FailAtEnd();
      bytes_ = {at_, length};
      at_ += length;
      return true;
    }
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    default:
      return Fail();
  }
  if (left() < size) return FailAtEnd();
  for (size_t i = 0; i < size; ++i) {
    number_ |= static_cast<uint64_t>(static_cast<uint8_t>(at_[i])) << (8 * i);
  }
  at_ += size;
  return true;
}

// Moves behind the end of the group whose start has just been read; inner groups are skipped with
// it.
bool WireReader::SkipGroup() {
  std::array<uint32_t, kDeepestGroup> open{};
  size_t depth = 0;
  open[depth++] = field_;
  while (depth > 0) {
    if (!ReadTag()) return false;
    if (wire_type_ == kEndGroup) {
      if (open[--depth] != field_) return Fail();
    } else if (wire_type_ == kStartGroup) {
      if (depth == open.size()) return Fail();
      open[depth++] = field_;
    } else if (!ReadValue()) {
      return false;
    }
  }
  wire_type_ = kStartGroup;
  bytes_ = {};
  number_ = 0;
  return true;
}

void FieldWriter::Grow(size_t size) {
  // Usually enough for the whole message. Not more for a long text, which may have been there
  // before: each writer would fill as much with zeros again.
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
