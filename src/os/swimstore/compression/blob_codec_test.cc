// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/compression/blob_codec.h"

#include <cstring>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ceph_ver.h"
#include "common/ceph_context.h"
#include "global/global_context.h"
#include "swimstore/compression/compression.h"

namespace swimstore {
namespace {

constexpr int kAll[] = {Compressor::COMP_ALG_SNAPPY, Compressor::COMP_ALG_ZLIB, Compressor::COMP_ALG_ZSTD,
                        Compressor::COMP_ALG_LZ4};

ceph::bufferlist some_blocks(uint32_t count) {
  std::mt19937 random(count);
  ceph::bufferlist blocks;
  for (uint32_t i = 0; i < count; ++i) {
    std::string text(kBlockBytes, 'a');
    for (uint32_t at = 0; at < kBlockBytes / 4; ++at) {
      text[at] = static_cast<char>(random());
    }
    blocks.append(text);  // a buffer each
  }
  return blocks;
}

struct Compressed {
  explicit Compressed(int algorithm, uint32_t count = 16) {
    ceph::bufferlist stored;
    EXPECT_TRUE(codec.compress(algorithm, 0.875, some_blocks(count), &stored, &blob));
    bytes = ceph::bufferptr(ceph::buffer::copy(stored.c_str(), stored.length()));
  }
  vtkv::Status decompress() {
    out.clear();
    return codec.decompress(blob, bytes, &out);
  }
  void set32(uint32_t at, uint32_t value) { std::memcpy(bytes.c_str() + at, &value, sizeof value); }

  const BlobCodec codec{g_ceph_context};
  CompressedBlob blob;
  ceph::bufferptr bytes;
  ceph::bufferlist out;
};

TEST(BlobCodec, MakesOfABlobWhatItWas) {
  for (const int algorithm : kAll) {
    for (const uint32_t count : {2u, 7u, 16u}) {
      Compressed one(algorithm, count);
      EXPECT_EQ(count, one.blob.count);
      EXPECT_EQ(one.bytes.length(), blocks_for(one.blob.bytes) * kBlockBytes);
      EXPECT_TRUE(one.decompress().ok()) << algorithm;
      EXPECT_TRUE(one.out.contents_equal(some_blocks(count)));
    }
  }
}

// One of four: then there is nothing to be compressed, or it could not be read again.
TEST(BlobCodec, SaysWhichPluginsAreMissing) {
  const std::filesystem::path all = g_conf().get_val<std::string>("plugin_dir");
  const std::filesystem::path some = std::filesystem::current_path() / "some_plugins";
  std::filesystem::remove_all(some);
  std::filesystem::create_directories(some / "compressor");
  for (const auto& file : std::filesystem::directory_iterator(all / "compressor")) {
    if (!file.path().filename().string().starts_with("libceph_zstd")) {
      std::filesystem::create_symlink(file.path(), some / "compressor" / file.path().filename());
    }
  }
  const boost::intrusive_ptr<CephContext> context(new CephContext(CEPH_ENTITY_TYPE_OSD), false);
  context->_conf.set_val("plugin_dir", some.string());
  context->_conf.set_val("swimstore_compression_mode", "force");
  context->_conf.apply_changes(nullptr);
  const Compression compression(context.get(), true);
  EXPECT_EQ(fmt::format("Ceph's compressor plugins cannot be loaded from {}/compressor: zstd. Install the package "
                        "ceph-common in the version of this program, {}",
                        some.string(), CEPH_GIT_NICE_VER),
            compression.codec().missing());
  EXPECT_TRUE(compression.codec().has(Compressor::COMP_ALG_SNAPPY));
  EXPECT_FALSE(compression.of_write(1, 0));
  osd_alert_list_t alerts;
  compression.add_alert("/store", {coll_t(spg_t(pg_t(0, 1)))}, &alerts);
  EXPECT_EQ(alerts["SWIMSTORE_NO_COMPRESSION"], "pools that ask for compression, and are stored without: 1; " +
                                                    compression.codec().missing() + ", and restart the OSD");
  std::filesystem::remove_all(some);

  const BlobCodec codec(g_ceph_context);
  EXPECT_EQ("", codec.missing());
  EXPECT_FALSE(codec.has(0));
  EXPECT_FALSE(codec.has(kAlgorithmMax + 1));
  Compressed one(Compressor::COMP_ALG_ZLIB);
  one.blob.algorithm = kAlgorithmMax + 1;
  EXPECT_EQ(vtkv::Status::Code::unsupported, one.decompress().code());
}

// Plugins believe lengths that the bytes tell: gigabytes would be allocated, or written past a buffer's end.
TEST(BlobCodec, BelievesNoLengthThatBytesTell) {
  for (const uint32_t claimed : {0u, 4096u, (64u << 10) + 1, 0x7fffffffu, 0xffffffffu}) {
    Compressed zstd(Compressor::COMP_ALG_ZSTD), lz4(Compressor::COMP_ALG_LZ4), pieces(Compressor::COMP_ALG_LZ4),
        size(Compressor::COMP_ALG_LZ4);
    zstd.set32(0, claimed);
    EXPECT_EQ(vtkv::Status::Code::corruption, zstd.decompress().code()) << claimed;
    pieces.set32(0, claimed);
    EXPECT_EQ(vtkv::Status::Code::corruption, pieces.decompress().code()) << claimed;
    lz4.set32(4, claimed);
    EXPECT_EQ(vtkv::Status::Code::corruption, lz4.decompress().code()) << claimed;
    size.set32(8, claimed);
    EXPECT_EQ(vtkv::Status::Code::corruption, size.decompress().code()) << claimed;
  }
  Compressed snappy(Compressor::COMP_ALG_SNAPPY);
  std::memcpy(snappy.bytes.c_str(), "\xff\xff\xff\xff\x0f", 5);
  EXPECT_EQ(vtkv::Status::Code::corruption, snappy.decompress().code());
}

// Forged bytes may decompress to other bytes, but to as many.
TEST(BlobCodec, MutatedBytesNeverHarm) {
  std::mt19937_64 random(7);
  for (const int algorithm : kAll) {
    const Compressed whole(algorithm);
    for (int i = 0; i < 2000; ++i) {
      ceph::bufferptr bytes(ceph::buffer::copy(whole.bytes.c_str(), whole.bytes.length()));
      for (uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
        bytes.c_str()[random() % std::min<uint64_t>(whole.blob.bytes, i % 2 == 0 ? 32 : UINT32_MAX)] ^=
            static_cast<char>(1 << random() % 8);
      }
      ceph::bufferlist out;
      if (whole.codec.decompress(whole.blob, bytes, &out).ok()) {
        ASSERT_EQ(out.length(), 16 * kBlockBytes);
      }
    }
  }
}

}  // namespace
}  // namespace swimstore
