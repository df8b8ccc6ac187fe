// SPDX-License-Identifier: Apache-2.0
// Streams through cri-resmgr in front of a real dockerd, however long, take none of its memory.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "test/e2e/docker/cli_transcript.h"
#include "test/e2e/docker/docker_node.h"
#include "test/support/containerd/child_process.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr int64_t kMostGrowthKib = 2048;
constexpr milliseconds kPatience{110'000};

// The most memory that the process held since ForgetPeak, in KiB.
int64_t PeakRssKib(pid_t pid) {
  return ProcStatus(pid, "VmHWM:");
}

void ForgetPeak(pid_t pid) {
  std::ofstream(fmt::format("/proc/{}/clear_refs", pid)) << '5';
}

class StreamsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto node = DockerNode::Start({});
    ASSERT_THAT(node, IsOk());
    node_ = *std::move(node);
    docker_ = std::make_unique<CliTranscript>(node_->socket(), node_->directory());
    docker_->Run({"version"});
    pid_ = node_->daemon().process().pid();
    ForgetPeak(pid_);
    before_ = PeakRssKib(pid_);
  }

  void ExpectNoGrowth() const {
    const int64_t after = PeakRssKib(pid_);
    RecordProperty("peak_rss_kib", static_cast<int>(after));
    fmt::print("peak RSS {} KiB before, {} KiB after\n", before_, after);
    EXPECT_LE(after - before_, kMostGrowthKib);
  }

  CliTranscript& docker() { return *docker_; }

 private:
  std::unique_ptr<DockerNode> node_;
  std::unique_ptr<CliTranscript> docker_;
  pid_t pid_ = 0;
  int64_t before_ = 0;
};

// 20 KiB a second for an hour, as fast as dockerd can take them, to a reader that rests. The
// container outlives its reader: dockerd 20.10 itself ends the logs of a slow reader early once the
// container has ended.
TEST_F(StreamsTest, LogsOfAnHour) {
  constexpr int kLines = 720'000;
  docker().Run({"run", "-d", "--name", "talker", "--network", "none",
                std::string(Dockerd::kBusyboxImage), "-c",
                fmt::format("yes {} | head -n {}; echo the-end; touch /written; sleep 1000",
                            std::string(99, 'l'), kLines)});
  const auto follower = docker().Begin({"logs", "-f", "talker"});
  ASSERT_NE(follower, nullptr);
  ASSERT_THAT(follower->Expect("llll"), IsOk());
  // All the pipes and sockets between fill up meanwhile.
  const Status written = WaitUntil("all is written", kPatience, [this] {
    return docker().Run({"exec", "talker", "ls", "/written"}).exit_code == 0;
  });
  ASSERT_THAT(written, IsOk());
  ASSERT_THAT(follower->Expect("the-end\n", kPatience), IsOk());
  docker().Run({"kill", "talker"});
  const auto result = Must(follower->Wait(kPatience));
  EXPECT_EQ(result.output.size(), size_t{kLines} * 100 + std::string_view("the-end\n").size());
  ExpectNoGrowth();
}

// A tar header of a regular file, and the padding of its data to whole blocks.
class TarFile {
 public:
  static constexpr size_t kBlock = 512;

  TarFile(std::string_view name, uint64_t size) : header_(kBlock, '\0'), size_(size) {
    Put(0, name);
    Put(100, "0000644\0");
    Put(108, "0000000\0");
    Put(116, "0000000\0");
    Put(124, fmt::format("{:011o}", size));
    Put(136, "00000000000");
    Put(148, "        ");
    Put(156, "0");
    Put(257, std::string_view("ustar\00000", 8));
    unsigned sum = 0;
    for (const char c : header_)
      sum += static_cast<unsigned char>(c);
    Put(148, fmt::format("{:06o}", sum));
    header_[154] = '\0';
  }
  const std::string& header() const { return header_; }
  std::string Padding() const { return std::string((kBlock - size_ % kBlock) % kBlock, '\0'); }

 private:
  void Put(size_t at, std::string_view text) { header_.replace(at, text.size(), text); }

  std::string header_;
  uint64_t size_;
};

using Sink = std::function<void(std::string_view)>;

constexpr uint64_t kPayload = uint64_t{1} << 30;
constexpr size_t kTarEnd = 2 * TarFile::kBlock;

// A layer with one file of a gibibyte.
void WriteLayer(const Sink& sink) {
  const std::string piece(size_t{1} << 20, '\0');
  sink(TarFile("zeros", kPayload).header());
  for (uint64_t written = 0; written < kPayload; written += piece.size())
    sink(piece);
  sink(std::string(kTarEnd, '\0'));
}

std::string DigestOfLayer() {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_DigestInit_ex(context, EVP_sha256(), nullptr);
  WriteLayer(
      [context](std::string_view bytes) { EVP_DigestUpdate(context, bytes.data(), bytes.size()); });
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(digest.data()), &size);
  EVP_MD_CTX_free(context);
  std::string text;
  for (unsigned i = 0; i < size; ++i)
    text += fmt::format("{:02x}", static_cast<unsigned char>(digest[i]));
  return text;
}

void WriteImage(const Sink& sink) {
  const auto file = [&sink](std::string_view name, const std::string& text) {
    const TarFile tar(name, text.size());
    sink(tar.header());
    sink(text);
    sink(tar.Padding());
  };
  file("manifest.json",
       R"([{"Config":"config.json","RepoTags":["local/large:1"],"Layers":["layer.tar"]}])");
  file("config.json",
       fmt::format(R"({{"architecture":"amd64","os":"linux","rootfs":{{"type":"layers",)"
                   R"("diff_ids":["sha256:{}"]}}}})",
                   DigestOfLayer()));
  const TarFile layer("layer.tar", TarFile::kBlock + kPayload + kTarEnd);
  sink(layer.header());
  WriteLayer(sink);
  sink(layer.Padding());
  sink(std::string(kTarEnd, '\0'));
}

TEST_F(StreamsTest, AnImageOfAGibibyte) {
  const auto load = docker().Begin({"load", "-q"});
  ASSERT_NE(load, nullptr);
  WriteImage([&load](std::string_view bytes) {
    if (HasFailure()) return;
    ASSERT_THAT(load->Type(bytes, kPatience), IsOk());
  });
  load->EndInput();
  const auto result = Must(load->Wait(kPatience));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("Loaded image: local/large:1"));
  ExpectNoGrowth();
}

}  // namespace
}  // namespace resmgr::test
