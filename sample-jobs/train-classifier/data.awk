# Points of the square [-2,2]^2, labelled 1 inside a noisy ring and 0 elsewhere: `x,y,label`.
BEGIN {
    srand(seed)
    for (i = 0; i < rows; i++) {
        x = 4 * rand() - 2; y = 4 * rand() - 2
        r = sqrt(x * x + y * y) + 0.08 * (rand() + rand() + rand() - 1.5)
        printf "%.4f,%.4f,%d\n", x, y, (r > 0.6 && r < 1.6)
    }
}
