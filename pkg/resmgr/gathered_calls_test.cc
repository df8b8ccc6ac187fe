// SPDX-License-Identifier: Apache-2.0
// How often the notes of open calls are written when one decision changes many containers.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FakeRuntimeClient;
using test::TestNode;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

using enum QosClass;

// Counts the writes to the file of open calls. The state's other files are written by a thread of
// their own.
class CountingFiles : public FileSystem {
 public:
  explicit CountingFiles(FileSystem& files) : files_(files) {}

  StatusOr<std::string> Read(const std::string& path, size_t limit) override {
    return files_.Read(path, limit);
  }
  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override {
    RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Create(path));
    if (path.find("/calls") == path.npos) return file;
    return std::make_unique<CountingFile>(std::move(file), writes);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  Status Remove(const std::string& path) override { return files_.Remove(path); }
  Status SyncDirectory(const std::string& path) override { return files_.SyncDirectory(path); }
  Status MakeDirectory(const std::string& path) override { return files_.MakeDirectory(path); }

  int writes = 0;

 private:
  class CountingFile : public File {
   public:
    CountingFile(std::unique_ptr<File> file, int& writes)
        : file_(std::move(file)), writes_(writes) {}
    Status Append(std::string_view bytes) override {
      ++writes_;
      return file_->Append(bytes);
    }
    Status Sync() override { return file_->Sync(); }

   private:
    const std::unique_ptr<File> file_;
    int& writes_;
  };

  FileSystem& files_;
};

class GatheredCallsTest : public ::testing::Test {
 protected:
  GatheredCallsTest() {
    node_.KeepState(files_);
    for (const char* const name : {"a", "b", "c", "d"})
      shared_.push_back(node_.Run(name, kBurstable, 100));
    EndTurn();
    files_.writes = 0;
  }

  FakeRuntimeClient& runtime() { return node_.runtime; }

  void EndTurn() {
    node_.loop().Post([this] { node_.loop().Stop(); });
    node_.loop().Run();
  }
  // Updates that a daemon would find open now.
  size_t OpenUpdates() {
    const OpenCalls calls(files_, "/state/calls", [](std::string_view) {});
    return static_cast<size_t>(std::ranges::count_if(shared_, [&calls](const ContainerId& id) {
      return calls.Contains(OpenCalls::Kind::kUpdate, id);
    }));
  }

  test::CrashingFileSystem memory_{1};
  CountingFiles files_{memory_};
  TestNode node_{test::S1Ht(), test::FirstFit};
  std::vector<ContainerId> shared_;
};

TEST_F(GatheredCallsTest, UpdatesOfOneDecisionAreNotedWithOneWriteBeforeTheFirstIsSent) {
  std::vector<size_t> noted;
  runtime().on_update = [&] { noted.push_back(OpenUpdates()); };
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  EXPECT_THAT(noted, ElementsAre(4u, 4u, 4u, 4u));
  EXPECT_EQ(files_.writes, 1);
  runtime().AnswerAll();
  EXPECT_EQ(files_.writes, 1) << "their ends are written when the turn ends";
  EndTurn();
  EXPECT_EQ(files_.writes, 2);
  EXPECT_EQ(OpenUpdates(), 0u);
}

TEST_F(GatheredCallsTest, WhatIsSentAgainAfterAReconnectIsNotedWithOneWrite) {
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  node_.manager().RuntimeDisconnected();
  runtime().DropAll();
  files_.writes = 0;
  std::vector<size_t> noted;
  runtime().on_update = [&] { noted.push_back(OpenUpdates()); };
  node_.manager().RuntimeConnected();
  runtime().AnswerList();
  EXPECT_THAT(runtime().updates, SizeIs(4));
  EXPECT_THAT(noted, Each(4u));
  EXPECT_LE(files_.writes, 1) << "they are open already";
}

// When a change comes while updates are under way, nothing is sent that is under way already.
TEST_F(GatheredCallsTest, ADecisionBetweenUpdatesAndAnswersSendsEachOnce) {
  ASSERT_TRUE(node_.Create("app", kGuaranteed, 2000).ok());
  ASSERT_TRUE(node_.Create("other", kGuaranteed, 1000).ok());
  EXPECT_THAT(runtime().updates, SizeIs(4));
  files_.writes = 0;
  runtime().AnswerAll();
  EndTurn();
  for (const ContainerId& id : shared_)
    EXPECT_EQ(runtime().CpusOf(id), node_.Placed(id));
  EXPECT_EQ(OpenUpdates(), 0u);
}

}  // namespace
}  // namespace resmgr
