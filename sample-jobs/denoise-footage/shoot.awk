# One frame, 96x64 grey levels: a soft disc that moves from left to right, with salt and pepper on it.
BEGIN {
    srand(frame + 0)
    print "P2"; print "96 64"; print "255"
    for (y = 0; y < 64; y++) {
        line = ""
        for (x = 0; x < 96; x++) {
            dx = x - 10 - 5 * frame; dy = y - 32
            grey = int(30 + 200 / (1 + exp((sqrt(dx * dx + dy * dy) - 14) / 2)))
            dice = rand()
            if (dice < 0.06) grey = 0
            else if (dice < 0.12) grey = 255
            line = line grey " "
        }
        print line
    }
}
