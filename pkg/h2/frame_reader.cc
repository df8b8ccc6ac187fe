// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/frame_reader.h"

#include <algorithm>
#include <cstring>

#include "pkg/h2/limits.h"

namespace resmgr::h2 {

Status FrameReader::Feed(Block* block, std::string_view& bytes, int most) {
  if (in_preface_) RESMGR_RETURN_IF_ERROR(ReadPreface(bytes));
  for (; !bytes.empty() && most > 0; --most) {
    // The usual case: the frame is available as a whole.
    if (state_ == State::kHeader && header_read_ == 0 && bytes.size() >= kFrameHeaderSize) {
      const FrameHeader header = ReadFrameHeader(Octets(bytes));
      const bool data = header.type == FrameType::kData;
      const size_t size = kFrameHeaderSize + header.length;
      if (size <= bytes.size() && header.length <= kOurMaxFrameSize &&
          !(data && header.Has(kFlagPadded))) {
        const std::string_view payload = bytes.substr(kFrameHeaderSize, header.length);
        bytes.remove_prefix(size);
        RESMGR_RETURN_IF_ERROR(
            data ? sink_.OnData(header, Slice(block, Octets(payload), payload.size()), true, true)
                 : sink_.OnFrame(header, payload));
        continue;
      }
    }
    RESMGR_RETURN_IF_ERROR(ReadPiece(block, bytes));
  }
  return OkStatus();
}

Status FrameReader::ReadPiece(Block* block, std::string_view& bytes) {
  if (state_ == State::kHeader) {
    if (!ReadHeader(bytes)) return OkStatus();
    RESMGR_RETURN_IF_ERROR(StartFrame());
  }
  if (state_ == State::kOther) return ReadOther(bytes);
  return state_ == State::kHeader ? OkStatus() : ReadData(block, bytes);
}

// False if the header is incomplete.
bool FrameReader::ReadHeader(std::string_view& bytes) {
  const size_t count = std::min(kFrameHeaderSize - header_read_, bytes.size());
  std::memcpy(header_bytes_.data() + header_read_, bytes.data(), count);
  bytes.remove_prefix(count);
  header_read_ += count;
  if (header_read_ < kFrameHeaderSize) return false;
  header_read_ = 0;
  header_ = ReadFrameHeader(header_bytes_.data());
  return true;
}

Status FrameReader::ReadPreface(std::string_view& bytes) {
  const size_t count = std::min(kPreface.size() - preface_read_, bytes.size());
  if (bytes.substr(0, count) != kPreface.substr(preface_read_, count)) {
    return InvalidArgument("the peer does not speak HTTP/2");
  }
  bytes.remove_prefix(count);
  preface_read_ += count;
  in_preface_ = preface_read_ < kPreface.size();
  return OkStatus();
}

Status FrameReader::StartFrame() {
  if (header_.length > kOurMaxFrameSize) {
    return InvalidArgument("a frame of {} bytes, at most {} are allowed", header_.length,
                           kOurMaxFrameSize);
  }
  left_ = header_.length;
  padding_ = 0;
  if (header_.type != FrameType::kData) {
    state_ = State::kOther;
    return OkStatus();
  }
  state_ = header_.Has(kFlagPadded) ? State::kPadLength : State::kData;
  if (state_ == State::kPadLength && left_ == 0) {
    return InvalidArgument("a padded frame without padding");
  }
  return sink_.OnData(header_, Slice(), true, false);
}

Status FrameReader::ReadData(Block* block, std::string_view& bytes) {
  if (state_ == State::kPadLength && !bytes.empty()) {
    padding_ = *Octets(bytes);
    bytes.remove_prefix(1);
    if (padding_ > left_ - 1) return InvalidArgument("more padding than frame");
    left_ -= 1 + padding_;
    state_ = State::kData;
  }
  if (state_ == State::kData) {
    const size_t count = std::min<size_t>(left_, bytes.size());
    if (count > 0) {
      RESMGR_RETURN_IF_ERROR(
          sink_.OnData(header_, Slice(block, Octets(bytes), count), false, false));
    }
    bytes.remove_prefix(count);
    left_ -= static_cast<uint32_t>(count);
    if (left_ > 0) return OkStatus();
    state_ = State::kPadding;
  }
  if (state_ == State::kPadding) {
    const size_t count = std::min<size_t>(padding_, bytes.size());
    bytes.remove_prefix(count);
    padding_ -= static_cast<uint32_t>(count);
    if (padding_ > 0) return OkStatus();
    state_ = State::kHeader;
    return sink_.OnData(header_, Slice(), false, true);
  }
  return OkStatus();
}

Status FrameReader::ReadOther(std::string_view& bytes) {
  const size_t count = std::min<size_t>(left_, bytes.size());
  const std::string_view piece = bytes.substr(0, count);
  bytes.remove_prefix(count);
  left_ -= static_cast<uint32_t>(count);
  if (left_ > 0) {
    payload_.Append(piece);
    return OkStatus();
  }
  state_ = State::kHeader;
  if (payload_.size() == 0) return sink_.OnFrame(header_, piece);
  payload_.Append(piece);
  Status taken = sink_.OnFrame(header_, payload_.view());
  payload_.Clear();
  return taken;
}

}  // namespace resmgr::h2
