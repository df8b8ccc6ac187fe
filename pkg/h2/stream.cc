// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/stream.h"

#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "pkg/h2/callbacks.h"
#include "pkg/h2/session.h"

namespace resmgr::h2 {

Stream::~Stream() {
  if (session_ == nullptr) return;
  Consume(unconsumed_);
  if (open_) {
    session_->Forget(*this);
    nghttp2_submit_rst_stream(session_->session_, NGHTTP2_FLAG_NONE, id_, NGHTTP2_CANCEL);
    session_->MarkDirty();
  }
  session_->Unlink(*this);
}

void Stream::SendHeaders(const HeaderBlock& headers, bool end) {
  if (!open_ || headers_sent_) return;
  headers_sent_ = true;
  ended_ = end;
  const NvArray fields(headers);
  const nghttp2_data_provider body = Session::Callbacks::BodyOf(*this);
  nghttp2_submit_response(session_->session_, id_, fields.data(), fields.size(),
                          end ? nullptr : &body);
  session_->MarkDirty();
}

void Stream::SendData(Slice data) {
  if (!open_ || ended_) return;
  queue_.Append(std::move(data));
  if (deferred_) {
    deferred_ = false;
    nghttp2_session_resume_data(session_->session_, id_);
  }
  session_->MarkDirty();
}

void Stream::SendEnd(HeaderBlock trailers) {
  if (!open_ || ended_) return;
  ended_ = true;
  trailers_ = std::move(trailers);
  if (deferred_) {
    deferred_ = false;
    nghttp2_session_resume_data(session_->session_, id_);
  }
  session_->MarkDirty();
}

void Stream::StopReceiving() {
  if (!open_ || stop_receiving_) return;
  stop_receiving_ = true;
  if (end_sent_) Reset(NGHTTP2_NO_ERROR);
}

void Stream::Reset(uint32_t error_code) {
  if (!open_) return;
  nghttp2_submit_rst_stream(session_->session_, NGHTTP2_FLAG_NONE, id_, error_code);
  session_->MarkDirty();
}

void Stream::Consume(size_t count) {
  unconsumed_ -= count;
  if (session_ == nullptr || session_->failed_ || count == 0) return;
  nghttp2_session_consume(session_->session_, id_, count);
  if (nghttp2_session_want_write(session_->session_) != 0) session_->MarkDirty();
}

}  // namespace resmgr::h2
