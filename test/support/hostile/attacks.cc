// SPDX-License-Identifier: Apache-2.0
#include "test/support/hostile/attacks.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "pkg/api/runtime_v1.pb.h"
#include "test/support/gzip.h"
#include "test/support/hostile/raw_client.h"
#include "test/support/raw_http2/raw_http2.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using Stop = std::atomic<bool>;

constexpr int kLowestPriority = 19;
constexpr size_t kMebi = size_t{1} << 20;
constexpr char kRunPodPath[] = "/runtime.v1.RuntimeService/RunPodSandbox";
constexpr char kCreatePath[] = "/runtime.v1.RuntimeService/CreateContainer";

// A header block in several frames.
std::string LongBlock(uint32_t stream, const std::string& block, bool end) {
  constexpr size_t kPiece = 16384;
  std::string frames;
  for (size_t at = 0; at < block.size(); at += kPiece) {
    const bool last = at + kPiece >= block.size();
    const auto flags = static_cast<uint8_t>((at == 0 && end ? 1 : 0) | (last ? 4 : 0));
    frames += Frame(at == 0 ? 1 : 9, flags, stream, block.substr(at, kPiece));
  }
  return frames;
}

std::string LongFields(size_t size) {
  std::string fields;
  while (fields.size() < size)
    fields += Fields({{"x-" + std::to_string(fields.size()), std::string(120, 'x')}});
  return fields;
}

std::string CreateOf(const std::string& pod, size_t size) {
  runtime::v1::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod);
  request.mutable_config()->mutable_metadata()->set_name("main");
  (*request.mutable_config()->mutable_annotations())["filler"] = std::string(size, 'x');
  return request.SerializeAsString();
}

// Reads incoming bytes, so that the relay goes on reading; false when the time is over.
bool GoOn(RawClient& client, const Stop& stop) {
  if (stop) return false;
  (void)client.Read(milliseconds(5));
  return !stop;
}

// Creations of 15 MiB, which are read as a whole before they are sent on.
void HoldRequests(const std::string& relay, const std::string& pod, Stop& stop) {
  RawClient client(relay);
  (void)client.Start();
  const std::string create = CreateOf(pod, 15 * kMebi);
  for (uint32_t call = 0; call < 4 && !stop; ++call) {
    (void)client.Send(RequestHeaders(2 * call + 1, kCreatePath));
    const std::string body = Body(2 * call + 1, create);
    for (size_t at = 0; at < body.size() && !stop; at += 64 * 1024) {
      if (!client.Send(std::string_view(body).substr(at, 64 * 1024), milliseconds(200))) break;
      (void)client.Read(milliseconds(0));
    }
  }
  while (GoOn(client, stop)) {
  }
}

void SendBombs(const std::string& relay, const std::string& pod, Stop& stop) {
  RawClient client(relay);
  (void)client.Start();
  const std::string bomb = Gzip(CreateOf(pod, 15 * kMebi));
  for (uint32_t call = 0; call < 64 && !stop; ++call) {
    const uint32_t stream = 2 * call + 1;
    (void)client.Send(
        RequestHeaders(stream, kCreatePath, {{"grpc-encoding", "gzip"}}) + Body(stream, bomb, true),
        milliseconds(200));
  }
  while (GoOn(client, stop)) {
  }
}

// One byte of a header block stands for four kilobytes.
void GrowHeaders(const std::string& relay, const std::string&, Stop& stop) {
  RawClient client(relay);
  (void)client.Start();
  // A literal that is put into the table: 3900 = 127 + 3773.
  const std::string first = Fields(RequestFields(kCreatePath)) + "\x40\x06" + "x-long" + "\x7f" +
                            static_cast<char>(0x80 | (3773 & 0x7f)) + static_cast<char>(3773 >> 7) +
                            std::string(3900, 'x');
  const std::string again = Fields(RequestFields(kCreatePath)) + std::string(60, '\xbe');
  (void)client.Send(Frame(1, 4, 1, first));
  for (uint32_t call = 1; call < 1000 && !stop; ++call)
    (void)client.Send(Frame(1, 4, 2 * call + 1, again), milliseconds(200));
  while (GoOn(client, stop)) {
  }
}

// Several connections of one thread, each sent the same and then left alone.
void SendFromMany(const std::string& relay, int clients, const std::string& bytes, Stop& stop,
                  const std::string& settings = Frame(4, 0, 0, "")) {
  std::vector<std::unique_ptr<RawClient>> all;
  for (int i = 0; i < clients && !stop; ++i) {
    all.push_back(std::make_unique<RawClient>(relay));
    if (all.back()->Start(settings)) (void)all.back()->Send(bytes, milliseconds(100));
  }
  while (!stop)
    std::this_thread::sleep_for(milliseconds(5));
}

// Bodies that the runtime does not take.
void PassBodies(const std::string& relay, const std::string&, Stop& stop) {
  std::string bytes;
  for (uint32_t i = 0; i < 8; ++i)
    bytes += RequestHeaders(2 * i + 1, kNoAnswer) +
             Body(2 * i + 1, std::string(size_t{250} * 1024, 'x'));
  SendFromMany(relay, 100, bytes, stop);
}

// Opens calls without any further action.
void OpenCalls(const std::string& relay, const std::string&, Stop& stop) {
  std::string bytes;
  for (uint32_t i = 0; i < 1000; ++i)
    bytes += RequestHeaders(2 * i + 1, kNoAnswer);
  SendFromMany(relay, 50, bytes, stop);
}

// Trailers that wait behind a byte of data, for which there is no window.
void LeaveTrailers(const std::string& relay, const std::string&, Stop& stop) {
  std::string bytes;
  for (uint32_t i = 0; i < 200; ++i)
    bytes += RequestHeaders(2 * i + 1, kLongTrailers) + Body(2 * i + 1, "");
  SendFromMany(relay, 10, bytes, stop, Settings(4, 0));
}

// Header blocks whose last piece never comes, in a frame and in several.
void BeginHeaders(const std::string& relay, const std::string&, Stop& stop) {
  const std::string block(240 * 1024, '\0');
  SendFromMany(relay, 60, Frame(static_cast<uint32_t>(block.size() + 1), 1, 4, 1, block), stop);
}

// Answers to pings, which the client never reads.
void LeaveAnswers(const std::string& relay, const std::string&, Stop& stop) {
  std::string pings;
  for (int i = 0; i < 30'000; ++i)
    pings += Frame(6, 0, 0, "12345678");
  SendFromMany(relay, 60, pings, stop);
}

}  // namespace

const std::vector<Attack>& Attacks() {
  static const auto& attacks = *new std::vector<Attack>{
      {"held requests of 15 MiB", 12, HoldRequests},
      {"gzip bombs", 4, SendBombs},
      {"header fields that grow", 4, GrowHeaders},
      {"bodies that the runtime does not take", 4, PassBodies},
      {"calls that only exist", 4, OpenCalls},
      {"trailers that wait", 2, LeaveTrailers},
      {"header blocks without an end", 2, BeginHeaders},
      {"answers that are not read", 2, LeaveAnswers},
  };
  return attacks;
}

StatusOr<std::unique_ptr<RawRuntime>> StartHostileRuntime(const std::string& socket) {
  const std::string trailers = Fields({{"grpc-status", "0"}}) + LongFields(200 * 1024);
  const auto answer = [trailers](uint32_t stream, const std::string& path) {
    if (path == kRunPodPath) return Answer(stream, std::string("\x0a\x04") + kHostilePod);
    if (path == kCreatePath || path == kNoAnswer) return std::string();
    if (path == kLongTrailers) {
      return Frame(1, 4, stream, Fields({{":status", "200"}})) + Frame(0, 0, stream, "x") +
             LongBlock(stream, trailers, true);
    }
    return Answer(stream, "");
  };
  return RawRuntime::Start(
      socket, {.answer = answer, .greeting = Settings(4, 4096), .opens_windows = false});
}

AttackRun::AttackRun(const std::vector<Attack>& attacks, const std::string& relay, int threads) {
  const auto run = [this, relay](const Attack& attack) {
    // They may keep the relay busy, but not take the processors away from it and from others.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestPriority);
    attack.run(relay, kHostilePod, stop_);
  };
  for (const Attack& attack : attacks) {
    for (int i = 0; i < std::min(attack.threads, threads); ++i)
      threads_.emplace_back(run, attack);
  }
}

AttackRun::~AttackRun() {
  stop_ = true;
  for (std::thread& thread : threads_)
    thread.join();
}

}  // namespace resmgr::test
