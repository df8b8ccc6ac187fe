// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/stream.h"

#include "pkg/h2/session.h"

namespace resmgr::h2 {

Stream::~Stream() {
  if (session_ == nullptr) return;
  if (open_ && !reset_ && id_ > 0 && !session_->failed_) {
    session_->SendReset(id_, static_cast<uint32_t>(ErrorCode::kCancel));
  }
  if (!session_->failed_) session_->receive_window_.Consume(unconsumed_);
  if (open_) {
    session_->Forget(*this);
  } else {
    session_->UnlinkClosed(*this);
  }
}

void Stream::SendHeaders(const HeaderBlock& headers, bool end) {
  if (!open_ || reset_ || headers_sent_) return;
  headers_sent_ = true;
  ended_ = end;
  end_sent_ = end;
  session_->SendHeaderBlock(headers, id_, end);
  if (end) session_->OnEndSent(*this);
}

void Stream::SendData(const Slice& data) {
  if (!open_ || reset_ || ended_) return;
  session_->SendData(*this, data);
}

void Stream::SendEnd(const HeaderBlock& trailers) {
  if (!open_ || reset_ || ended_) return;
  ended_ = true;
  session_->SendEnd(*this, trailers);
}

void Stream::StopReceiving() {
  if (!open_ || stop_receiving_) return;
  stop_receiving_ = true;
  if (end_sent_ && !end_received_) Reset(static_cast<uint32_t>(ErrorCode::kNoError));
}

void Stream::Reset(uint32_t error_code) {
  if (!open_ || reset_) return;
  queue_.Clear();
  if (id_ > 0) session_->SendReset(id_, error_code);
  session_->CloseSoon(*this, error_code);
}

void Stream::Consume(size_t count) {
  unconsumed_ -= count;
  if (session_ == nullptr || session_->failed_ || count == 0) return;
  session_->Consume(*this, count);
}

}  // namespace resmgr::h2
