// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/frame.h"
#include "pkg/h2/memory.h"

namespace resmgr::h2 {

// Cuts the bytes of a connection into frames, however they arrive. DATA payloads are handed on as
// they come, all other frames whole. Knows no streams and no state beyond the frame at hand.
class FrameReader {
 public:
  // Any error ends the reading for good; it is returned by Feed.
  class Sink {
   public:
    virtual ~Sink() = default;
    // A whole frame that is no DATA frame. The payload is valid during the call.
    virtual Status OnFrame(const FrameHeader& header, std::string_view payload) = 0;
    // Some bytes of a DATA frame, perhaps none, without its padding. Mostly the whole frame, which
    // begins and ends here.
    virtual Status OnData(const FrameHeader& header, const Slice& bytes, bool begins,
                          bool ends) = 0;
  };

  // `preface`: a client's first bytes are expected before the first frame.
  FrameReader(Sink& sink, bool preface) : sink_(sink), in_preface_(preface) {}

  // `bytes` lie in `block`; slices of DATA refer to it. Takes about `most` frames of them; what is
  // left in `bytes` is to be fed again, first. InvalidArgument: no HTTP/2.
  Status Feed(Block* block, std::string_view& bytes, int most);
  // Bytes that are kept until their frame is whole.
  size_t held() const { return payload_.size(); }

 private:
  Status ReadPreface(std::string_view& bytes);
  // Some of a frame that is not here as a whole.
  Status ReadPiece(Block* block, std::string_view& bytes);
  // The header is complete in header_.
  bool ReadHeader(std::string_view& bytes);
  Status StartFrame();
  Status ReadData(Block* block, std::string_view& bytes);
  Status ReadOther(std::string_view& bytes);

  enum class State { kHeader, kPadLength, kData, kPadding, kOther };

  Sink& sink_;
  bool in_preface_;
  size_t preface_read_ = 0;
  State state_ = State::kHeader;
  std::array<uint8_t, kFrameHeaderSize> header_bytes_;
  size_t header_read_ = 0;
  FrameHeader header_;
  uint32_t left_ = 0;  // of the payload, without padding
  uint32_t padding_ = 0;
  HeldText payload_;  // of a frame that arrives in pieces
};

}  // namespace resmgr::h2
