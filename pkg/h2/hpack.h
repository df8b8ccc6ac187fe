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

// Header compression (RFC 7541): one decoder (by libnghttp2) and one encoder per connection. gRPC
// peers repeat a few short blocks, so the last results are remembered as long as the compression
// table stays unchanged.
class HpackMemory {
 public:
  // The fields of an encoded block, or null.
  const HeaderBlock* FindFields(std::string_view block) const;
  // The remembered encoding of these fields; empty if unknown.
  std::string_view FindBlock(const HeaderBlock& headers) const;
  // Remembers a decoded or encoded block. Forgets everything if the block changed the table.
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

  // The fields of a remembered block, else null; valid until the next Decode.
  const HeaderBlock* Recall(std::string_view block) const { return memory_.FindFields(block); }
  // Decodes a whole header block, which Recall does not know. kInvalidArgument: it is malformed,
  // and the connection must end. kResourceExhausted: more than `limit` bytes when decoded, counted
  // as RFC 9113 section 6.5.2 does, or a name or value of more than 64 KiB; the connection can go
  // on.
  StatusOr<HeaderBlock> Decode(std::string_view block, size_t limit);

 private:
  nghttp2_hd_inflater* inflater_ = nullptr;
  HpackMemory memory_;
};

// Encodes header blocks (RFC 7541 section 6). Repeated fields enter the dynamic table, also the
// path of a call; libnghttp2's encoder would send the path in full each time, and every receiver
// would have to decode it. Never uses Huffman coding: over a unix socket the saved bytes cost less
// than the coding.
class HpackEncoder {
 public:
  // The peer's SETTINGS_HEADER_TABLE_SIZE (RFC 9113 section 6.5.2, RFC 7541 section 4.2).
  void SetTableSize(uint32_t size);
  // Returns the encoded block, valid until the next call.
  std::string_view Encode(const HeaderBlock& headers);
  // Called when the last block is not used any more: frees the memory of a long one, which would
  // otherwise be kept as long as the connection lives.
  void GiveBack() {
    if (block_.capacity() > kKept) std::string().swap(block_);
  }
  // Bytes of memory that are kept for blocks, without those that are remembered.
  size_t kept() const { return block_.capacity(); }

 private:
  struct Entry {
    std::string name;
    std::string value;
  };
  struct Match {
    size_t index = 0;       // index of the whole field; 0: none
    size_t name_index = 0;  // index of a field of that name
  };

  void EncodeField(std::string_view name, std::string_view value, bool never_index,
                   std::string& out);
  Match Find(std::string_view name, std::string_view value) const;
  void Insert(std::string_view name, std::string_view value);
  void Shrink(size_t limit);

  static constexpr size_t kKept = 4096;

  std::deque<Entry> table_;  // newest first
  size_t table_size_ = 0;
  size_t max_size_ = 4096;
  bool announce_size_ = false;  // at the beginning of the next block
  size_t smallest_size_ = 0;    // smallest size since the last announcement
  std::string block_;
  HpackMemory memory_;
};

// Whether decoding the block leaves the compression table unchanged: it has only references and
// literals that do not enter the table. False for malformed blocks.
bool LeavesTableAlone(std::string_view block);

}  // namespace resmgr::h2
