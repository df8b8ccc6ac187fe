// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/h2/frame_reader.h"
#include "pkg/h2/hpack.h"

namespace {

using resmgr::Status;
using resmgr::h2::FrameHeader;

// Decodes header blocks and encodes them again; the result must decode to the same fields, and so
// must the blocks that the decoder remembers.
class Sink : public resmgr::h2::FrameReader::Sink {
 public:
  Status OnFrame(const FrameHeader& header, std::string_view payload) override {
    if (in_data_) __builtin_trap();
    if (header.type != resmgr::h2::FrameType::kHeaders) return resmgr::OkStatus();
    std::optional<resmgr::h2::HeaderBlock> known;
    if (const auto* recalled = decoder_.Recall(payload); recalled != nullptr) known = *recalled;
    const auto headers = decoder_.Decode(payload, 4096);
    if (known.has_value() && (!headers.ok() || !(*known == *headers))) __builtin_trap();
    if (!headers.ok()) return headers.status();
    const std::string_view block = encoder_.Encode(*headers);
    const auto again = peer_.Decode(block, 1 << 20);
    if (!again.ok() || again->fields().size() != headers->fields().size()) __builtin_trap();
    return resmgr::OkStatus();
  }
  Status OnData(const FrameHeader& header, const resmgr::h2::Slice& bytes, bool begins,
                bool ends) override {
    if (begins == in_data_) __builtin_trap();
    in_data_ = !ends;
    if (begins) left_ = header.length;
    if (bytes.size() > left_) __builtin_trap();
    left_ -= bytes.size();
    return resmgr::OkStatus();
  }

 private:
  resmgr::h2::HpackDecoder decoder_;
  resmgr::h2::HpackEncoder encoder_;
  resmgr::h2::HpackDecoder peer_;
  bool in_data_ = false;
  size_t left_ = 0;
};

}  // namespace

// The first byte is the size of the pieces in which the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t step = 1 + data[0] % 32;
  Sink sink;
  resmgr::h2::FrameReader reader(sink, false);
  resmgr::h2::Block* block = resmgr::h2::Block::New(size);
  std::copy(data, data + size, block->data());
  for (size_t at = 1; at < size; at += step) {
    std::string_view piece(reinterpret_cast<const char*>(block->data()) + at,
                           std::min(step, size - at));
    bool broken = false;
    while (!piece.empty() && !broken)
      broken = !reader.Feed(block, piece, 2).ok();
    if (broken) break;
  }
  (void)resmgr::h2::LeavesTableAlone({reinterpret_cast<const char*>(data), size});
  block->Unref();
  return 0;
}
