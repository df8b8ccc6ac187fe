// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/h2/header_block.h"

struct nghttp2_hd_inflater;
struct nghttp2_hd_deflater;

namespace resmgr::h2 {

// Header compression (RFC 7541) by libnghttp2, one decoder and one encoder per connection. What
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

  // A whole header block. InvalidArgument: it is broken and the connection with it.
  // ResourceExhausted: more than `limit` bytes when decoded, counted as RFC 9113 section 6.5.2
  // does; the connection can go on.
  StatusOr<HeaderBlock> Decode(std::string_view block, size_t limit);

 private:
  nghttp2_hd_inflater* inflater_ = nullptr;
  HpackMemory memory_;
};

class HpackEncoder {
 public:
  HpackEncoder();
  ~HpackEncoder();
  HpackEncoder(const HpackEncoder&) = delete;
  HpackEncoder& operator=(const HpackEncoder&) = delete;

  // The peer's SETTINGS_HEADER_TABLE_SIZE.
  void SetTableSize(uint32_t size);
  // Appends the block to `out`.
  Status Encode(const HeaderBlock& headers, std::string& out);

 private:
  nghttp2_hd_deflater* deflater_ = nullptr;
  HpackMemory memory_;
};

// Whether decoding the block leaves the compression table as it is: only references to it and
// literals that are not put into it. False for broken blocks.
bool LeavesTableAlone(std::string_view block);

}  // namespace resmgr::h2
