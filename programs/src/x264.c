/* x264's library encodes a short film. Its own program loads eighty libraries, of which some read what
 * the kernel tells of this moment: it executes more or fewer instructions each time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x264.h>

enum { WIDTH = 640, HEIGHT = 352 };

static void write_all(FILE *to, const x264_nal_t *nal, int bytes) {
    if (bytes < 0 || (bytes > 0 && fwrite(nal[0].p_payload, 1, (size_t)bytes, to) != (size_t)bytes)) {
        fputs("cannot encode\n", stderr);
        exit(1);
    }
}

int main(void) {
    x264_param_t how;
    x264_picture_t in, out;
    x264_nal_t *nal = NULL;
    int count;
    FILE *film = fopen("video.yuv", "rb"), *to = fopen("output", "wb");
    if (!film || !to || x264_param_default_preset(&how, "veryslow", NULL) < 0) return 1;
    how.i_threads = 1;
    how.i_lookahead_threads = 1;
    how.b_deterministic = 1;
    how.i_log_level = X264_LOG_NONE;
    how.i_width = WIDTH;
    how.i_height = HEIGHT;
    how.i_fps_num = 25;
    how.i_fps_den = 1;
    if (x264_picture_alloc(&in, X264_CSP_I420, WIDTH, HEIGHT) < 0) return 1;
    x264_t *encoder = x264_encoder_open(&how);
    if (!encoder) return 1;
    const size_t sizes[3] = {WIDTH * HEIGHT, WIDTH * HEIGHT / 4, WIDTH * HEIGHT / 4};
    for (int64_t frame = 0;; frame++) {
        int whole = 1;
        for (int plane = 0; plane < 3; plane++)
            whole = whole && fread(in.img.plane[plane], 1, sizes[plane], film) == sizes[plane];
        if (!whole) break;
        in.i_pts = frame;
        const int bytes = x264_encoder_encode(encoder, &nal, &count, &in, &out);
        write_all(to, nal, bytes);
    }
    while (x264_encoder_delayed_frames(encoder)) {
        const int bytes = x264_encoder_encode(encoder, &nal, &count, NULL, &out);
        write_all(to, nal, bytes);
    }
    x264_encoder_close(encoder);
    x264_picture_clean(&in);
    return fclose(to) ? 1 : 0;
}
