// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/cdi_files.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <set>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/claims/claim_names.h"
#include "pkg/dra/claim_metadata.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/wait.h"

namespace resmgr::dra {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLimit = 4096;
const ClaimForm kForm{.kind = std::string(kClaimKind)};

// A claim of two CPUs.
Claim ClaimOf(const std::string& uid) {
  return {.uid = uid,
          .namespace_name = "default",
          .name = "fast",
          .parts = {{.request = "cpus", .device = "cpu-numa-1", .node = 1, .cpus = 2}},
          .driver = "cpu.example.com",
          .pools = {"worker-1"}};
}

class CdiFilesTest : public testing::Test {
 protected:
  Status Wait(const std::function<void(CdiFiles::Done)>& order) {
    std::optional<Status> result;
    order([&](const Status& status) {
      result = status;
      loop_.Stop();
    });
    EXPECT_FALSE(result.has_value()) << "it runs later";
    loop_.Run();
    return result.value_or(Internal("no result"));
  }
  Status Write(const std::string& uid, const CpuSet& cpus) {
    return Wait([&](auto done) {
      files_.Write(kForm, {.grant = {.uid = uid, .cpus = {cpus}}}, std::move(done));
    });
  }
  Status Reconcile(std::vector<ClaimGrant> held,
                   CdiFiles::Others others = CdiFiles::Others::kRemove) {
    std::vector<ClaimFacts> facts;
    facts.reserve(held.size());
    for (const ClaimGrant& grant : held)
      facts.push_back({.grant = grant, .claim = ClaimOf(grant.uid)});
    return Wait([&](auto done) { files_.Reconcile(form_, facts, others, std::move(done)); });
  }
  std::string Path(const std::string& uid, std::string_view kind = kClaimKind) const {
    return cdi_ + "/" + CdiFileName(kind, uid);
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(cdi_))
      names.insert(entry.path().filename().string());
    return names;
  }
  void Put(const std::string& name) { std::ofstream(cdi_ + "/" + name) << "{}"; }

  const TempDir directory_;
  const std::string cdi_ = directory_.File("run") + "/cdi";
  const std::string metadata_ = directory_.File("kubelet") + "/metadata";
  ClaimForm form_ = kForm;  // of Reconcile
  EventLoop loop_;
  CdiFiles files_{
      {.loop = loop_, .directory = cdi_, .metadata = metadata_, .metadata_on_host = "/on/host"}};
};

TEST_F(CdiFilesTest, WritesForRuntimesAndRemoves) {
  ASSERT_EQ(Write("u-1", CpuSet{8, 9}), OkStatus()) << "the directory is made";
  EXPECT_EQ(ReadFile(Path("u-1"), kLimit).value(), CdiSpec(kClaimKind, "u-1", CpuSet{8, 9}));
  struct stat found {};
  ASSERT_EQ(::stat(Path("u-1").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0644U);
  ASSERT_EQ(Write("u-1", CpuSet{8}), OkStatus());
  EXPECT_EQ(ReadFile(Path("u-1"), kLimit).value(), CdiSpec(kClaimKind, "u-1", CpuSet{8}));
  const auto remove = [this](auto done) { files_.Remove("u-1", std::move(done)); };
  EXPECT_EQ(Wait(remove), OkStatus());
  EXPECT_TRUE(Names().empty());
  EXPECT_EQ(Wait(remove), OkStatus()) << "none is a success";
}

// So its time tells since when the claim is prepared.
TEST_F(CdiFilesTest, AFileThatIsRightKeepsItsTime) {
  EXPECT_EQ(FindCdiFile(cdi_, "u-1").status().code(), StatusCode::kNotFound);
  ASSERT_EQ(Write("u-1", CpuSet{8, 9}), OkStatus());
  const std::array<timespec, 2> times = {timespec{.tv_sec = 1000, .tv_nsec = 0},
                                         timespec{.tv_sec = 1000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, Path("u-1").c_str(), times.data(), 0), 0);
  ASSERT_EQ(Write("u-1", CpuSet{8, 9}), OkStatus());
  const StatusOr<CdiFile> found = FindCdiFile(cdi_, "u-1");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, Path("u-1"));
  EXPECT_EQ(found->written, std::chrono::system_clock::from_time_t(1000));
  ASSERT_EQ(Write("u-1", CpuSet{8}), OkStatus());
  EXPECT_GT(FindCdiFile(cdi_, "u-1")->written, found->written);
}

TEST_F(CdiFilesTest, AtTheStartOnlyHeldClaimsHaveFiles) {
  EXPECT_EQ(Reconcile({}), OkStatus()) << "there may be no directory";
  fs::create_directories(cdi_);
  Put("vendor.com-gpu.json");
  Put(CdiFileName(kClaimKind, "gone"));
  Put(CdiFileName(kClaimKind, "torn") + ".tmp");
  Put(CdiFileName(kCompatibleClaimKind, "gone"));
  Put(CdiFileName(kCompatibleClaimKind, "other-kind"));
  ASSERT_EQ(Reconcile({{.uid = "held", .cpus = {CpuSet{1}, CpuSet{4}}},
                       {.uid = "other-kind", .cpus = {CpuSet{2}}}}),
            OkStatus());
  EXPECT_EQ(Names(), (std::set<std::string>{"vendor.com-gpu.json", CdiFileName(kClaimKind, "held"),
                                            CdiFileName(kCompatibleClaimKind, "other-kind")}));
  EXPECT_EQ(ReadFile(Path("held"), kLimit).value(), CdiSpec(kClaimKind, "held", CpuSet{1, 4}));
}

TEST_F(CdiFilesTest, AFileNamesTheCpusThatItsClaimHoldsNow) {
  ASSERT_EQ(Write("u-1", CpuSet{8, 9}), OkStatus());
  ASSERT_EQ(Write("lost", CpuSet{10}), OkStatus());
  Put(CdiFileName(kCompatibleClaimKind, "u-2"));
  ASSERT_EQ(Reconcile({{.uid = "u-1", .cpus = {CpuSet{2, 3}}},
                       {.uid = "u-2", .cpus = {CpuSet{4}}},
                       {.uid = "lost", .cpus = {CpuSet()}}}),
            OkStatus());
  EXPECT_EQ(ReadFile(Path("u-1"), kLimit).value(), CdiSpec(kClaimKind, "u-1", CpuSet{2, 3}));
  EXPECT_EQ(ReadFile(Path("u-2", kCompatibleClaimKind), kLimit).value(),
            CdiSpec(kCompatibleClaimKind, "u-2", CpuSet{4}));
  EXPECT_EQ(ReadFile(Path("lost"), kLimit).value(), CdiSpec(kClaimKind, "lost", CpuSet{10}));
}

// The state could not be read: containers of these claims may be started again.
TEST_F(CdiFilesTest, FilesOfClaimsThatMayBeHeldStay) {
  ASSERT_EQ(Write("u-1", CpuSet{8, 9}), OkStatus());
  ASSERT_EQ(Reconcile({}, CdiFiles::Others::kKeep), OkStatus());
  EXPECT_EQ(Names(), (std::set<std::string>{CdiFileName(kClaimKind, "u-1")}));
}

TEST_F(CdiFilesTest, TheLastOrderStays) {
  for (int i = 0; i < 20; ++i)
    files_.Write(kForm, {.grant = {.uid = "u-1", .cpus = {CpuSet{i}}}}, [](const Status&) {});
  files_.Remove("u-2", [](const Status&) {});
  ASSERT_EQ(Write("u-1", CpuSet{99}), OkStatus());
  EXPECT_EQ(ReadFile(Path("u-1"), kLimit).value(), CdiSpec(kClaimKind, "u-1", CpuSet{99}));
}

TEST_F(CdiFilesTest, ContainersAreToldTheCpusThatTheySee) {
  ASSERT_EQ(Wait([&](auto done) {
              files_.Write(kForm,
                           {.grant = {.uid = "u-1", .cpus = {CpuSet{8, 9}}, .seen = {CpuSet{8}}}},
                           std::move(done));
            }),
            OkStatus());
  EXPECT_EQ(ReadFile(Path("u-1"), kLimit).value(), CdiSpec(kClaimKind, "u-1", CpuSet{8}));
}

class MetadataFilesTest : public CdiFilesTest {
 protected:
  MetadataFilesTest() { form_.metadata = true; }

  Status Prepare(const CpuSet& cpus, const Claim& claim = ClaimOf("u-1")) {
    return Wait([&](auto done) {
      files_.Write(form_, {.grant = {.uid = claim.uid, .cpus = {cpus}}, .claim = claim},
                   std::move(done));
    });
  }
  std::string File(const std::string& uid = "u-1") const {
    return metadata_ + "/" + uid + "/cpus/cpu.example.com-metadata.json";
  }
  std::string Text() const { return ReadFile(File(), kLimit).value_or(""); }
  // The text that the file is to have.
  static std::string Says(const CpuSet& cpus, int64_t generation) {
    return MetadataText(ClaimOf("u-1"), {.uid = "u-1", .cpus = {cpus}}, "cpus", generation);
  }
};

TEST_F(MetadataFilesTest, AFileTellsTheCpusWithAHigherGenerationAtEachChange) {
  ASSERT_EQ(Prepare(CpuSet{8, 9}), OkStatus());
  EXPECT_EQ(Text(), Says(CpuSet{8, 9}, 1));
  EXPECT_EQ(ReadFile(cdi_ + "/" + MetadataCdiFileName("u-1"), kLimit).value_or(""),
            MetadataCdiSpec(ClaimOf("u-1"), "/on/host/u-1"));
  ASSERT_EQ(Prepare(CpuSet{8, 9}), OkStatus());
  EXPECT_EQ(Text(), Says(CpuSet{8, 9}, 1)) << "nothing has changed";
  ASSERT_EQ(Reconcile({{.uid = "u-1", .cpus = {CpuSet{8}}}}), OkStatus());
  EXPECT_EQ(Text(), Says(CpuSet{8}, 2));
  struct stat found {};
  ASSERT_EQ(::stat(File().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0644U);
}

TEST_F(MetadataFilesTest, AllFilesGoWithTheClaim) {
  ASSERT_EQ(Prepare(CpuSet{8, 9}), OkStatus());
  EXPECT_EQ(Wait([this](auto done) { files_.Remove("u-1", std::move(done)); }), OkStatus());
  EXPECT_FALSE(fs::exists(metadata_ + "/u-1"));
  EXPECT_TRUE(Names().empty());
}

// A kill may leave a part of the files, and a start may find none.
TEST_F(MetadataFilesTest, AtTheStartOnlyHeldClaimsHaveMetadata) {
  fs::create_directories(metadata_ + "/torn/cpus");
  fs::create_directories(metadata_ + "/not a claim");
  fs::create_directories(cdi_);
  Put(MetadataCdiFileName("gone"));
  Put(MetadataCdiFileName("gone-too") + ".tmp");
  ASSERT_EQ(Reconcile({{.uid = "u-1", .cpus = {CpuSet{8, 9}}}}), OkStatus());
  EXPECT_EQ(Names(),
            (std::set<std::string>{CdiFileName(kClaimKind, "u-1"), MetadataCdiFileName("u-1")}));
  EXPECT_EQ(Text(), Says(CpuSet{8, 9}, 1));
  EXPECT_FALSE(fs::exists(metadata_ + "/torn"));
  EXPECT_TRUE(fs::exists(metadata_ + "/not a claim"));
}

// Kubelets name its device for each container of the pod that they start again.
TEST_F(MetadataFilesTest, MetadataThatAClaimHasIsKeptWhereOthersGetNone) {
  ASSERT_EQ(Prepare(CpuSet{8, 9}), OkStatus());
  form_.metadata = false;
  ASSERT_EQ(Reconcile({{.uid = "u-1", .cpus = {CpuSet{8}}}, {.uid = "u-2", .cpus = {CpuSet{2}}}}),
            OkStatus());
  EXPECT_EQ(Text(), Says(CpuSet{8}, 2));
  EXPECT_FALSE(fs::exists(File("u-2")));
  ASSERT_EQ(Reconcile({}), OkStatus());
  EXPECT_FALSE(fs::exists(metadata_ + "/u-1"));
  EXPECT_TRUE(Names().empty());
}

// Its CDI file, which comes last, was not written, and claims get no metadata any more.
TEST_F(MetadataFilesTest, WhatAKilledWriteLeftGoesWithTheClaim) {
  form_.metadata = false;
  fs::create_directories(metadata_ + "/u-1/cpus");
  const auto remove = [this](auto done) { files_.Remove("u-1", std::move(done)); };
  ASSERT_EQ(Wait(remove), OkStatus());
  EXPECT_FALSE(fs::exists(metadata_ + "/u-1"));
  fs::create_directories(metadata_ + "/u-2/cpus");
  ASSERT_EQ(Reconcile({}), OkStatus());
  EXPECT_FALSE(fs::exists(metadata_ + "/u-2"));
}

TEST_F(MetadataFilesTest, ARequestThatCanBeNoPartOfAPathIsRefused) {
  Claim claim = ClaimOf("u-1");
  claim.parts[0].request = "../../etc";
  EXPECT_EQ(Prepare(CpuSet{8}, claim).code(), StatusCode::kInvalidArgument);
}

// The disk answers after the daemon has given up, and the claim's CPUs were given back meanwhile.
TEST_F(CdiFilesTest, ARemovalUndoesAWriteThatHungBeforeIt) {
  std::promise<void> answers;
  CdiFiles files({.loop = loop_,
                  .directory = cdi_,
                  .deadline = std::chrono::milliseconds(5),
                  .write = [disk = answers.get_future().share()](
                               const std::string& path, std::string_view data, mode_t mode) {
                    disk.wait();
                    return AtomicWriteFile(path, data, mode);
                  }});
  const auto write = [&files](auto done) {
    files.Write(kForm, {.grant = {.uid = "u-1", .cpus = {CpuSet{8}}}}, std::move(done));
  };
  EXPECT_EQ(Wait(write).code(), StatusCode::kDeadlineExceeded);
  const auto remove = [&files](auto done) { files.Remove("u-1", std::move(done)); };
  EXPECT_EQ(Wait(remove).code(), StatusCode::kDeadlineExceeded);
  answers.set_value();
  // The next one comes after both.
  EXPECT_TRUE(resmgr::test::Eventually([&] { return Wait(remove).ok(); }));
  EXPECT_TRUE(Names().empty());
  EXPECT_FALSE(files.owes());
}

TEST_F(CdiFilesTest, ARemovalThatFailsIsOwedUntilAllFilesWereCompared) {
  const auto remove = [this](auto done) { files_.Remove("u-1", std::move(done)); };
  fs::create_directories(cdi_ + "/" + CdiFileName(kClaimKind, "u-1"));
  EXPECT_FALSE(Wait(remove).ok()) << "a directory is no file";
  EXPECT_TRUE(files_.owes());
  EXPECT_FALSE(Reconcile({}).ok());
  EXPECT_TRUE(files_.owes());
  fs::remove(cdi_ + "/" + CdiFileName(kClaimKind, "u-1"));
  Put(CdiFileName(kClaimKind, "u-1"));
  EXPECT_EQ(Reconcile({}), OkStatus());
  EXPECT_TRUE(Names().empty());
  EXPECT_FALSE(files_.owes());
}

TEST_F(CdiFilesTest, ADirectoryThatCannotBeIsAnError) {
  std::ofstream(directory_.File("run")) << "a file";
  EXPECT_FALSE(Write("u-1", CpuSet{1}).ok());
}

TEST_F(CdiFilesTest, MoreThanTheLimitIsRefused) {
  size_t done = 0;
  size_t refused = 0;
  constexpr size_t kOrders = CdiFiles::kMostWaiting + 2;
  const auto count = [&](const Status& status) {
    if (status.code() == StatusCode::kResourceExhausted) ++refused;
    if (++done == kOrders) loop_.Stop();
  };
  for (size_t i = 0; i < kOrders; ++i)
    files_.Remove("u-1", count);
  loop_.Run();
  EXPECT_EQ(refused, 2U);
  EXPECT_TRUE(files_.owes());
}

}  // namespace
}  // namespace resmgr::dra
