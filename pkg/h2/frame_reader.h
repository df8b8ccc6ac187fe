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

// Cuts the bytes of a connection into frames, however they arrive. DATA payloads are passed on as
// they come, all other frames whole. Keeps no state besides the current frame.
class FrameReader {
 public:
  // Any error ends the reading for good; Feed returns it.
  class Sink {
   public:
    virtual ~Sink() = default;
    // A whole frame other than DATA. The payload is valid during the call.
    virtual Status OnFrame(const FrameHeader& header, std::string_view payload) = 0;
    // Some bytes of a DATA frame, perhaps none, without its padding; usually the whole frame, which
    // begins and ends here.
    virtual Status OnData(const FrameHeader& header, const Slice& bytes, bool begins,
                          bool ends) = 0;
  };

  // `preface`: the connection preface of a client is expected before the first frame.
  FrameReader(Sink& sink, bool preface) : sink_(sink), in_preface_(preface) {}

  // `bytes` lie in `block`; DATA slices refer to it. Reads about `most` frames; the next call must
  // begin with the bytes left. kInvalidArgument: not HTTP/2.
  Status Feed(Block* block, std::string_view& bytes, int most);
  // Number of bytes that are kept until their frame is whole.
  size_t held() const { return payload_.size(); }

 private:
  Status ReadPreface(std::string_view& bytes);
  // Reads a part of a frame that has not arrived as a whole.
  Status ReadPiece(Block* block, std::string_view& bytes);
  // Completes header_; false if bytes are missing.
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
  uint32_t left_ = 0;  // payload bytes to come, without padding
  uint32_t padding_ = 0;
  HeldText payload_;  // payload of a frame that arrives in pieces
};

}  // namespace resmgr::h2
