// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "pkg/h2/session.h"

namespace resmgr::h2 {

// What nghttp2 calls, as a friend of Session. One table serves all sessions.
struct Session::Callbacks {
  static const nghttp2_session_callbacks* Table();
  static nghttp2_data_provider BodyOf(Stream& stream);

 private:
  static Session& Self(void* user_data) { return *static_cast<Session*>(user_data); }
  // Null for a stream that its handler dropped. nghttp2 asks for the same one many times in a row.
  static Stream* Find(Session& self, int32_t id);

  static ssize_t OnSend(nghttp2_session*, const uint8_t* data, size_t length, int, void* user);
  static int OnSendData(nghttp2_session* session, nghttp2_frame* frame, const uint8_t* header,
                        size_t length, nghttp2_data_source*, void* user);
  static ssize_t OnReadBody(nghttp2_session* session, int32_t id, uint8_t*, size_t length,
                            uint32_t* flags, nghttp2_data_source*, void* user);
  static ssize_t OnFrameLength(nghttp2_session*, uint8_t, int32_t, int32_t session_window,
                               int32_t stream_window, uint32_t max_frame, void*);
  static int OnBeginHeaders(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                      nghttp2_rcbuf* value, uint8_t flags, void* user);
  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* user);
  static void OnHeadersComplete(Session& self, Stream& stream, const nghttp2_frame& frame);
  static int OnDataChunk(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* data,
                         size_t length, void* user);
  static int OnStreamClose(nghttp2_session* session, int32_t id, uint32_t code, void* user);
  static int OnFrameSent(nghttp2_session* session, const nghttp2_frame* frame, void*);
  static int OnFrameNotSent(nghttp2_session*, const nghttp2_frame* frame, int, void* user);
};

// The fields as nghttp2 takes them; they point into the block. Usual blocks need no allocation.
class NvArray {
 public:
  explicit NvArray(const HeaderBlock& headers);
  NvArray(const NvArray&) = delete;
  NvArray& operator=(const NvArray&) = delete;

  const nghttp2_nv* data() const { return many_.empty() ? few_.data() : many_.data(); }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kFew = 16;

  size_t size_;
  std::array<nghttp2_nv, kFew> few_;
  std::vector<nghttp2_nv> many_;
};

}  // namespace resmgr::h2
