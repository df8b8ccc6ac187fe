// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/hpack.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "pkg/h2/limits.h"

namespace resmgr::h2 {

namespace {

constexpr size_t kDefaultTableSize = 4096;
constexpr size_t kMaxRemembered = 512;

std::string_view View(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Skips an integer of RFC 7541 section 5.1 whose first byte holds `prefix_bits` of it; false at the
// end of the block.
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

bool SkipString(std::string_view& block) {
  uint64_t length = 0;
  if (!ReadInteger(block, 7, length) || length > block.size()) return false;
  block.remove_prefix(length);
  return true;
}

}  // namespace

bool LeavesTableAlone(std::string_view block) {
  while (!block.empty()) {
    const auto byte = static_cast<uint8_t>(block.front());
    uint64_t index = 0;
    if ((byte & 0x80) != 0) {  // a reference
      if (!ReadInteger(block, 7, index)) return false;
      continue;
    }
    if ((byte & 0x60) != 0) return false;  // a literal that is put into the table, or a new size
    if (!ReadInteger(block, 4, index)) return false;
    if (index == 0 && !SkipString(block)) return false;
    if (!SkipString(block)) return false;
  }
  return true;
}

const HeaderBlock* HpackMemory::FindFields(std::string_view block) const {
  for (const Entry& entry : entries_) {
    if (!block.empty() && entry.block == block) return &entry.headers;
  }
  return nullptr;
}

std::string_view HpackMemory::FindBlock(const HeaderBlock& headers) const {
  for (const Entry& entry : entries_) {
    if (!entry.block.empty() && entry.headers == headers) return entry.block;
  }
  return {};
}

void HpackMemory::Note(std::string_view block, const HeaderBlock& headers) {
  if (!LeavesTableAlone(block)) {
    for (Entry& entry : entries_)
      entry.block.clear();
  } else if (block.size() <= kMaxRemembered) {
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
  if (const HeaderBlock* known = memory_.FindFields(block); known != nullptr) return *known;
  HeaderBlock headers;
  size_t size = 0;
  std::string_view rest = block;
  for (;;) {
    nghttp2_nv field;
    int flags = 0;
    const ssize_t used = nghttp2_hd_inflate_hd2(
        inflater_, &field, &flags, reinterpret_cast<const uint8_t*>(rest.data()), rest.size(), 1);
    if (used < 0) {
      return InvalidArgument("broken header block: {}", nghttp2_strerror(static_cast<int>(used)));
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
  memory_.Note(block, headers);
  if (size > limit) {
    return ResourceExhausted("{} bytes of header fields, at most {} are taken", size, limit);
  }
  return headers;
}

HpackEncoder::HpackEncoder() {
  nghttp2_hd_deflate_new(&deflater_, kDefaultTableSize);
}

HpackEncoder::~HpackEncoder() {
  nghttp2_hd_deflate_del(deflater_);
}

void HpackEncoder::SetTableSize(uint32_t size) {
  // More than the default would only cost memory here.
  nghttp2_hd_deflate_change_table_size(deflater_, std::min<size_t>(size, kDefaultTableSize));
  memory_ = {};
}

Status HpackEncoder::Encode(const HeaderBlock& headers, std::string& out) {
  if (const std::string_view known = memory_.FindBlock(headers); !known.empty()) {
    out.append(known);
    return OkStatus();
  }
  constexpr size_t kFew = 16;
  const size_t count = headers.fields().size();
  std::array<nghttp2_nv, kFew> few;
  std::vector<nghttp2_nv> many;
  nghttp2_nv* nvs = few.data();
  if (count > kFew) {
    many.resize(count);
    nvs = many.data();
  }
  for (size_t i = 0; i < count; ++i) {
    const HeaderBlock::Field& field = headers.fields()[i];
    const std::string_view name = headers.NameOf(field);
    const std::string_view value = headers.ValueOf(field);
    nvs[i].name = reinterpret_cast<uint8_t*>(const_cast<char*>(name.data()));
    nvs[i].namelen = name.size();
    nvs[i].value = reinterpret_cast<uint8_t*>(const_cast<char*>(value.data()));
    nvs[i].valuelen = value.size();
    nvs[i].flags = field.never_index ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
  }
  const size_t before = out.size();
  out.resize(before + nghttp2_hd_deflate_bound(deflater_, nvs, count));
  const ssize_t used = nghttp2_hd_deflate_hd(
      deflater_, reinterpret_cast<uint8_t*>(out.data() + before), out.size() - before, nvs, count);
  if (used < 0) {
    out.resize(before);
    return Internal("header fields cannot be encoded: {}",
                    nghttp2_strerror(static_cast<int>(used)));
  }
  out.resize(before + static_cast<size_t>(used));
  memory_.Note(std::string_view(out).substr(before), headers);
  return OkStatus();
}

}  // namespace resmgr::h2
