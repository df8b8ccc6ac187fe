// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/h2/header_block.h"

struct nghttp2_hd_inflater;

namespace resmgr::h2 {

// Header compression (RFC 7541), one decoder (by libnghttp2) and one encoder per connection. What
// gRPC peers send again and again are a few short blocks, so the last results are remembered for as
// long as the compression table stays as it was.
class HpackMemory {
 public:
  // The fields of an encoded block, or null.
  const HeaderBlock* FindFields(std::string_view block) const;
  // The encoding of these fields; empty when it is not known.
  std::string_view FindBlock(const HeaderBlock& headers) const;
  // What was just decoded or encoded. Forgets everything when that changed the compression table.
  void Note(std::string_view block, const HeaderBlock& headers);

 private:
  struct Entry {
    std::string block;
    HeaderBlock headers;
  };
  std::array<Entry, 4> entries_;
  size_t next_ = 0;
};

class HpackDecoder {
 public:
  HpackDecoder();
  ~HpackDecoder();
  HpackDecoder(const HpackDecoder&) = delete;
  HpackDecoder& operator=(const HpackDecoder&) = delete;

  // The fields of a block that is remembered, else null; valid until the next Decode.
  const HeaderBlock* Recall(std::string_view block) const { return memory_.FindFields(block); }
  // A whole header block, which Recall does not know. InvalidArgument: it is broken and the
  // connection with it. ResourceExhausted: more than `limit` bytes when decoded, counted as RFC
  // 9113 section 6.5.2 does; the connection can go on.
  StatusOr<HeaderBlock> Decode(std::string_view block, size_t limit);

 private:
  nghttp2_hd_inflater* inflater_ = nullptr;
  HpackMemory memory_;
};

// Encodes header blocks (RFC 7541 section 6). Puts into the dynamic table what comes again, the
// path of a call included, which libnghttp2's encoder would spell out in every request at the cost
// of every receiver. Never Huffman: over a unix socket bytes cost less than bits.
class HpackEncoder {
 public:
  // The peer's SETTINGS_HEADER_TABLE_SIZE (RFC 9113 section 6.5.2, RFC 7541 section 4.2).
  void SetTableSize(uint32_t size);
  // The block, until the next call.
  std::string_view Encode(const HeaderBlock& headers);

 private:
  struct Entry {
    std::string name;
    std::string value;
  };
  struct Match {
    size_t index = 0;       // of the whole field; 0 is none
    size_t name_index = 0;  // of a field of that name
  };

  void EncodeField(std::string_view name, std::string_view value, bool never_index,
                   std::string& out);
  Match Find(std::string_view name, std::string_view value) const;
  void Insert(std::string_view name, std::string_view value);
  void Shrink(size_t limit);

  std::deque<Entry> table_;  // the newest first
  size_t table_size_ = 0;
  size_t max_size_ = 4096;
  bool announce_size_ = false;  // at the start of the next block
  size_t smallest_size_ = 0;    // since the last announcement
  std::string block_;
  HpackMemory memory_;
};

// Whether decoding the block leaves the compression table as it is: only references to it and
// literals that are not put into it. False for broken blocks.
bool LeavesTableAlone(std::string_view block);

}  // namespace resmgr::h2
