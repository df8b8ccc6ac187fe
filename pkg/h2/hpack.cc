// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/hpack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <nghttp2/nghttp2.h>

#include "pkg/h2/limits.h"

namespace resmgr::h2 {

namespace {

constexpr size_t kDefaultTableSize = 4096;
// Limits of a remembered block, encoded and decoded: a short block may decode to many fields.
constexpr size_t kMaxRemembered = 512;
constexpr size_t kMaxRememberedFields = 8192;

std::string_view View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Skips an integer of RFC 7541 section 5.1 whose first byte holds `prefix_bits` of it; false if the
// block is too short.
bool ReadInteger(std::string_view& block, int prefix_bits, uint64_t& value) {
  if (block.empty()) return false;
  const uint64_t mask = (uint64_t{1} << prefix_bits) - 1;
  value = static_cast<uint8_t>(block.front()) & mask;
  block.remove_prefix(1);
  if (value < mask) return true;
  for (int shift = 0; shift < 28; shift += 7) {
    if (block.empty()) return false;
    const auto byte = static_cast<uint8_t>(block.front());
    block.remove_prefix(1);
    value += uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

// The reverse of ReadInteger; `pattern` are the bits before the prefix in the first byte.
void AppendInteger(size_t value, int prefix_bits, uint8_t pattern, std::string& out) {
  const size_t mask = (size_t{1} << prefix_bits) - 1;
  if (value < mask) {
    out.push_back(static_cast<char>(pattern | value));
    return;
  }
  out.push_back(static_cast<char>(pattern | mask));
  for (value -= mask; value >= 0x80; value >>= 7) {
    out.push_back(static_cast<char>(0x80 | (value & 0x7f)));
  }
  out.push_back(static_cast<char>(value));
}

void AppendString(std::string_view text, std::string& out) {
  AppendInteger(text.size(), 7, 0, out);
  out.append(text);
}

// The fields of the static table (RFC 7541 appendix A) that gRPC uses.
struct StaticField {
  size_t index;
  std::string_view name;
  std::string_view value;
};
constexpr std::array<StaticField, 9> kStaticFields = {{
    {1, ":authority", ""},
    {2, ":method", "GET"},
    {3, ":method", "POST"},
    {4, ":path", "/"},
    {6, ":scheme", "http"},
    {7, ":scheme", "https"},
    {8, ":status", "200"},
    {31, "content-type", ""},
    {58, "user-agent", ""},
}};
constexpr size_t kFirstDynamic = 62;

bool SkipString(std::string_view& block) {
  uint64_t length = 0;
  if (!ReadInteger(block, 7, length) || length > block.size()) return false;
  block.remove_prefix(length);
  return true;
}

// Encoded bytes of the longest string that libnghttp2 decodes; it takes a longer one for malformed.
constexpr size_t kLongestString = 65536;

// Copies a string, or a shorter one if it is too long: a field with either is larger than the
// table, so it empties the table if it enters it (RFC 7541 section 4.4).
bool CopyString(std::string_view& block, std::string& out) {
  std::string_view rest = block;
  uint64_t length = 0;
  if (!ReadInteger(rest, 7, length) || length > rest.size()) return false;
  rest.remove_prefix(length);
  if (length <= kLongestString) {
    out += block.substr(0, block.size() - rest.size());
  } else {
    AppendString(std::string(kDefaultTableSize, 'x'), out);
  }
  block = rest;
  return true;
}

// The block with short strings in place of those that are too long; as it is from where it is
// malformed.
std::string WithoutLongStrings(std::string_view block) {
  std::string out;
  while (!block.empty()) {
    const std::string_view rest = block;
    const auto byte = static_cast<uint8_t>(block.front());
    const bool literal = (byte & 0x80) == 0 && (byte & 0xe0) != 0x20;
    const int prefix_bits = (byte & 0x80) != 0 ? 7 : (byte & 0x40) != 0 ? 6 : literal ? 4 : 5;
    uint64_t index = 0;
    std::string field;
    bool good = ReadInteger(block, prefix_bits, index);
    field += rest.substr(0, rest.size() - block.size());
    if (good && literal && index == 0) good = CopyString(block, field);
    if (good && literal) good = CopyString(block, field);
    if (!good) return out.append(rest);
    out += field;
  }
  return out;
}

}  // namespace

bool LeavesTableAlone(std::string_view block) {
  while (!block.empty()) {
    const auto byte = static_cast<uint8_t>(block.front());
    uint64_t index = 0;
    if ((byte & 0x80) != 0) {  // an indexed field
      if (!ReadInteger(block, 7, index)) return false;
      continue;
    }
    if ((byte & 0x60) != 0) return false;  // a literal that enters the table, or a new table size
    if (!ReadInteger(block, 4, index)) return false;
    if (index == 0 && !SkipString(block)) return false;
    if (!SkipString(block)) return false;
  }
  return true;
}

const HeaderBlock* HpackMemory::FindFields(std::string_view block) const {
  for (const Entry& entry : entries_) {
    // memcmp, since == would call two functions.
    if (entry.block.size() == block.size() && !block.empty() &&
        std::memcmp(entry.block.data(), block.data(), block.size()) == 0) {
      return &entry.headers;
    }
  }
  return nullptr;
}

std::string_view HpackMemory::FindBlock(const HeaderBlock& headers) const {
  // Usually the other side's decoder has remembered this very block.
  for (const Entry& entry : entries_) {
    if (!entry.block.empty() && entry.headers.SameMemory(headers)) return entry.block;
  }
  for (const Entry& entry : entries_) {
    if (!entry.block.empty() && entry.headers == headers) return entry.block;
  }
  return {};
}

void HpackMemory::Note(std::string_view block, const HeaderBlock& headers) {
  if (!LeavesTableAlone(block)) {
    for (Entry& entry : entries_)
      entry.block.clear();
  } else if (block.size() <= kMaxRemembered && headers.memory() <= kMaxRememberedFields) {
    entries_[next_].block = block;
    entries_[next_].headers = headers;
    next_ = (next_ + 1) % entries_.size();
  }
}

HpackDecoder::HpackDecoder() {
  nghttp2_hd_inflate_new(&inflater_);
}

HpackDecoder::~HpackDecoder() {
  nghttp2_hd_inflate_del(inflater_);
}

StatusOr<HeaderBlock> HpackDecoder::Decode(std::string_view block, size_t limit) {
  HeaderBlock headers;
  size_t size = 0;
  std::string_view rest = block;
  std::string shorter;
  if (block.size() > kLongestString) {
    shorter = WithoutLongStrings(block);
    if (shorter.size() < block.size()) size = limit + 1;
    rest = shorter;
  }
  for (;;) {
    nghttp2_nv field;
    int flags = 0;
    const ssize_t used = nghttp2_hd_inflate_hd2(
        inflater_, &field, &flags, reinterpret_cast<const uint8_t*>(rest.data()), rest.size(), 1);
    if (used < 0) {
      return InvalidArgument("malformed header block: {}",
                             nghttp2_strerror(static_cast<int>(used)));
    }
    rest.remove_prefix(static_cast<size_t>(used));
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
      size += field.namelen + field.valuelen + kHeaderOverhead;
      if (size <= limit) {
        headers.Add(View(field.name, field.namelen), View(field.value, field.valuelen),
                    (field.flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0);
      }
    }
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && rest.empty()) {
      return InvalidArgument("the header block ends too early");
    }
  }
  nghttp2_hd_inflate_end_headers(inflater_);
  if (size > limit) {
    memory_ = {};  // a part of the block was read, and may have changed the table
    return ResourceExhausted("header fields of more than {} bytes, or one of more than {}", limit,
                             kLongestString);
  }
  memory_.Note(block, headers);
  return headers;
}

void HpackEncoder::SetTableSize(uint32_t size) {
  // A table larger than the default would only cost memory.
  max_size_ = std::min<size_t>(size, kDefaultTableSize);
  smallest_size_ = announce_size_ ? std::min(smallest_size_, max_size_) : max_size_;
  announce_size_ = true;
  Shrink(max_size_);
  memory_ = {};
}

std::string_view HpackEncoder::Encode(const HeaderBlock& headers) {
  if (const std::string_view known = memory_.FindBlock(headers); !known.empty()) return known;
  block_.clear();
  if (std::exchange(announce_size_, false)) {
    // The peer shrank its table to this size and must see that the encoder did, too (RFC 7541 4.2).
    if (smallest_size_ < max_size_) AppendInteger(smallest_size_, 5, 0x20, block_);
    AppendInteger(max_size_, 5, 0x20, block_);
  }
  for (const HeaderBlock::Field& field : headers.fields()) {
    EncodeField(headers.NameOf(field), headers.ValueOf(field), field.never_index, block_);
  }
  memory_.Note(block_, headers);
  return block_;
}

void HpackEncoder::EncodeField(std::string_view name, std::string_view value, bool never_index,
                               std::string& out) {
  const Match match = Find(name, value);
  if (match.index != 0 && !never_index) {
    AppendInteger(match.index, 7, 0x80, out);
    return;
  }
  // Deadlines differ from call to call and would push repeated fields out of the table.
  const bool insert = !never_index && name != "grpc-timeout" &&
                      name.size() + value.size() + kHeaderOverhead <= max_size_ / 4;
  if (insert) {
    AppendInteger(match.name_index, 6, 0x40, out);
  } else {
    AppendInteger(match.name_index, 4, never_index ? 0x10 : 0x00, out);
  }
  if (match.name_index == 0) AppendString(name, out);
  AppendString(value, out);
  if (insert) Insert(name, value);
}

HpackEncoder::Match HpackEncoder::Find(std::string_view name, std::string_view value) const {
  Match match;
  for (const StaticField& field : kStaticFields) {
    if (field.name != name) continue;
    if (field.value == value) return {.index = field.index, .name_index = field.index};
    match.name_index = field.index;
  }
  size_t index = kFirstDynamic;
  for (const Entry& entry : table_) {
    if (entry.name == name) {
      if (entry.value == value) return {.index = index, .name_index = index};
      if (match.name_index == 0) match.name_index = index;
    }
    ++index;
  }
  return match;
}

void HpackEncoder::Insert(std::string_view name, std::string_view value) {
  const size_t size = name.size() + value.size() + kHeaderOverhead;
  Shrink(max_size_ - size);
  table_.push_front({std::string(name), std::string(value)});
  table_size_ += size;
}

void HpackEncoder::Shrink(size_t limit) {
  while (table_size_ > limit) {
    table_size_ -= table_.back().name.size() + table_.back().value.size() + kHeaderOverhead;
    table_.pop_back();
  }
}

}  // namespace resmgr::h2
