// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace resmgr::h2 {

// The memory limits of one connection. The windows are the bytes that a peer may send without a
// window update. Smaller ones cost more: the peer waits for updates, and replies take turns in
// pieces instead of passing one after the other; when the connection's window is full, some replies
// wait long (test/bench). The connection's window is several times a stream's, so that a client
// that does not read some of its replies still gets the others.
inline constexpr int32_t kConnectionWindow = 2048 * 1024;
inline constexpr int32_t kStreamWindow = 256 * 1024;
// A stream's window while unread streams take nearly all of the connection's window: small enough
// that each of kOurMaxConcurrentStreams may have one.
inline constexpr int32_t kCrowdedStreamWindow = 16 * 1024;
// No more DATA is encoded while this many bytes wait for the socket.
inline constexpr size_t kOutputHighWater = size_t{256} * 1024;
// A peer for which more bytes wait (answers to its control frames and header blocks) is
// disconnected. A client for which more than kOutputHighWater wait is not read meanwhile.
inline constexpr size_t kOutputLimit = size_t{4} * 1024 * 1024;
inline constexpr uint32_t kOurMaxFrameSize = 256 * 1024;
inline constexpr uint32_t kOurMaxConcurrentStreams = 1024;
// Limit of DATA bytes of a connection that were received but not consumed by handlers.
inline constexpr int64_t kMostUnread =
    2 * int64_t{kConnectionWindow} + int64_t{kCrowdedStreamWindow} * kOurMaxConcurrentStreams;
// Limit of all bytes that peers make the process hold (Memory). Above it, a connection is read in
// small pieces, and one that holds more than kKeptShare is not read, until memory is released.
inline constexpr size_t kMuchHeld = size_t{64} * 1024 * 1024;
inline constexpr size_t kKeptShare = size_t{8} * 1024;
// Frames that are taken from one connection before others get their turn: each may cost the process
// far more than its few bytes cost the peer.
inline constexpr int kFramesPerTurn = 256;
// Calls that a client may give up in a second, by a frame or by breaking the rules of their
// streams, before its connection ends: each also costs the runtime, which may have started on it.
inline constexpr uint32_t kMostResets = 1000;
// Settings in one frame; there are six to nine kinds of them.
inline constexpr size_t kMostSettings = 64;
// Time for a client to read that it must open no more streams.
inline constexpr std::chrono::seconds kDrainPingTimeout{1};
// Time for a client that has all its answers to close its connection.
inline constexpr std::chrono::seconds kLastWordTimeout{1};
// Bytes of one header block: far above gRPC stacks' own limits (8 to 16 KiB by default).
inline constexpr size_t kMaxHeaderBlock = size_t{256} * 1024;
inline constexpr size_t kHeaderOverhead = 32;  // per field, RFC 9113 section 6.5.2
inline constexpr size_t kReadBlock = size_t{256} * 1024;
inline constexpr size_t kScratchBlock = size_t{16} * 1024;
// A read block with less free space than this is replaced by a fresh one.
inline constexpr size_t kReadAtLeast = size_t{64} * 1024;
// Pieces up to this size are copied instead of referenced: most requests then leave in one piece,
// which costs the kernel less than several.
inline constexpr size_t kCopyBelow = 8192;

}  // namespace resmgr::h2
