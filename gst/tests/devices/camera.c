/* A simulated camera, for tests of programs that are started with this in LD_PRELOAD: what the kernel
 * answers for a V4L2 device of 320x240 YUYV at 30 frames a second. FAKE_CAMERA names the device, for
 * example /dev/video97; it is plugged in as long as the file FAKE_CAMERA_PLUGGED exists.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 320, HEIGHT = 240, BYTES = WIDTH * HEIGHT * 2, PAGES = (BYTES + 4095) / 4096 * 4096, BUFFERS = 8, EACH = 33333333 };

static int camera = -1, copied = -1;
static uint32_t sequence, head, tail, queue[BUFFERS];
static struct timespec next;

static int is_camera(const char *path) {
    const char *name = getenv("FAKE_CAMERA");
    return name && path && strcmp(name, path) == 0;
}

static int is_plugged(void) {
    const char *path = getenv("FAKE_CAMERA_PLUGGED");
    return path && access(path, F_OK) == 0;
}

static int wrong(int code) {
    errno = code;
    return -1;
}

static int open_camera(void) {
    if (!is_plugged()) return wrong(ENOENT);
    camera = memfd_create("camera", MFD_CLOEXEC);
    if (camera < 0 || ftruncate(camera, (off_t)PAGES * BUFFERS) < 0) return -1;
    head = tail = 0;
    return camera;
}

int open(const char *path, int flags, ...) {
    if (is_camera(path)) return open_camera();
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return open(path, flags | O_LARGEFILE, mode);
}

int stat(const char *path, struct stat *it) {
    if (!is_camera(path)) return fstatat(AT_FDCWD, path, it, 0);
    if (!is_plugged()) return wrong(ENOENT);
    memset(it, 0, sizeof *it);
    it->st_mode = S_IFCHR | 0660;
    it->st_rdev = makedev(81, 97);
    return 0;
}

int stat64(const char *path, struct stat64 *it) {
    /* The same on 64-bit machines. */
    return stat(path, (struct stat *)it);
}

int dup(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "dup");
    int copy = real(fd);
    if (fd >= 0 && fd == camera) copied = copy;
    return copy;
}

int close(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
    if (fd >= 0 && fd == camera) camera = -1;
    if (fd >= 0 && fd == copied) copied = -1;
    return real(fd);
}

static void format(struct v4l2_pix_format *it) {
    memset(it, 0, sizeof *it);
    it->width = WIDTH, it->height = HEIGHT, it->pixelformat = V4L2_PIX_FMT_YUYV, it->field = V4L2_FIELD_NONE;
    it->bytesperline = WIDTH * 2, it->sizeimage = BYTES, it->colorspace = V4L2_COLORSPACE_SRGB;
}

static void describe(struct v4l2_buffer *it) {
    it->length = PAGES, it->m.offset = it->index * PAGES, it->memory = V4L2_MEMORY_MMAP;
    it->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | V4L2_BUF_FLAG_MAPPED, it->bytesused = BYTES, it->field = V4L2_FIELD_NONE;
}

/* A bar that moves, when its time has come. */
static int take(struct v4l2_buffer *it) {
    if (head == tail) return wrong(EAGAIN);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    if (!is_plugged()) return wrong(ENODEV);
    it->index = queue[head++ % BUFFERS];
    describe(it);
    it->sequence = sequence++;
    it->timestamp.tv_sec = next.tv_sec, it->timestamp.tv_usec = next.tv_nsec / 1000;
    next.tv_nsec += EACH;
    if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, next.tv_sec++;
    uint8_t *picture = mmap(NULL, PAGES, PROT_WRITE, MAP_SHARED, camera, it->m.offset);
    if (picture == MAP_FAILED) return -1;
    for (int n = 0; n < BYTES; n += 2) {
        picture[n] = (n / 2 % WIDTH + it->sequence * 4) % WIDTH < 40 ? 220 : 40;
        picture[n + 1] = 128;
    }
    munmap(picture, PAGES);
    return 0;
}

static int answer(unsigned long request, void *argument) {
    switch (request) {
    case VIDIOC_QUERYCAP: {
        struct v4l2_capability *it = argument;
        memset(it, 0, sizeof *it);
        strcpy((char *)it->driver, "fake"), strcpy((char *)it->card, "a camera of a test"), strcpy((char *)it->bus_info, "platform:fake");
        it->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
        it->capabilities = it->device_caps | V4L2_CAP_DEVICE_CAPS;
        return 0;
    }
    case VIDIOC_ENUM_FMT: {
        struct v4l2_fmtdesc *it = argument;
        if (it->index > 0 || it->type != V4L2_BUF_TYPE_VIDEO_CAPTURE) return wrong(EINVAL);
        it->flags = 0, it->pixelformat = V4L2_PIX_FMT_YUYV;
        strcpy((char *)it->description, "YUYV 4:2:2");
        return 0;
    }
    case VIDIOC_ENUM_FRAMESIZES: {
        struct v4l2_frmsizeenum *it = argument;
        if (it->index > 0) return wrong(EINVAL);
        it->type = V4L2_FRMSIZE_TYPE_DISCRETE, it->discrete.width = WIDTH, it->discrete.height = HEIGHT;
        return 0;
    }
    case VIDIOC_ENUM_FRAMEINTERVALS: {
        struct v4l2_frmivalenum *it = argument;
        if (it->index > 0) return wrong(EINVAL);
        it->type = V4L2_FRMIVAL_TYPE_DISCRETE, it->discrete.numerator = 1, it->discrete.denominator = 30;
        return 0;
    }
    case VIDIOC_G_FMT:
    case VIDIOC_S_FMT:
    case VIDIOC_TRY_FMT: {
        struct v4l2_format *it = argument;
        if (it->type != V4L2_BUF_TYPE_VIDEO_CAPTURE) return wrong(EINVAL);
        format(&it->fmt.pix);
        return 0;
    }
    case VIDIOC_G_PARM:
    case VIDIOC_S_PARM: {
        struct v4l2_captureparm *it = &((struct v4l2_streamparm *)argument)->parm.capture;
        memset(it, 0, sizeof *it);
        it->capability = V4L2_CAP_TIMEPERFRAME, it->timeperframe.numerator = 1, it->timeperframe.denominator = 30;
        return 0;
    }
    case VIDIOC_REQBUFS: {
        struct v4l2_requestbuffers *it = argument;
        if (it->memory != V4L2_MEMORY_MMAP) return wrong(EINVAL);
        it->count = it->count > BUFFERS ? BUFFERS : it->count;
        it->capabilities = V4L2_BUF_CAP_SUPPORTS_MMAP;
        head = tail = 0;
        return 0;
    }
    case VIDIOC_QUERYBUF:
        describe(argument);
        return 0;
    case VIDIOC_QBUF:
        if (!is_plugged()) return wrong(ENODEV);
        ((struct v4l2_buffer *)argument)->flags |= V4L2_BUF_FLAG_QUEUED;
        queue[tail++ % BUFFERS] = ((struct v4l2_buffer *)argument)->index;
        return 0;
    case VIDIOC_DQBUF:
        return take(argument);
    case VIDIOC_STREAMON:
        return clock_gettime(CLOCK_MONOTONIC, &next);
    case VIDIOC_STREAMOFF:
        head = tail = 0;
        return 0;
    default:
        return wrong(ENOTTY);
    }
}

int ioctl(int fd, unsigned long request, ...) {
    va_list more;
    va_start(more, request);
    void *argument = va_arg(more, void *);
    va_end(more);
    if (fd >= 0 && (fd == camera || fd == copied)) return answer(request, argument);
    int (*real)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
    return real(fd, request, argument);
}
